"""What goes wrong with a partition of a mirror, by what the operator does next.

MillstreamError
└── MirrorError                 the partition is quarantined; nothing was skipped, nothing doubled
    ├── PositionUnprovable      where to go on cannot be proved: delete the flow's remote topics and its
    │   │                       offset-syncs topic, then mirror anew
    │   ├── TargetNotEmpty          records in the target that no sync accounts for
    │   ├── TargetTruncated         the target has lost records it had acknowledged
    │   ├── TargetRecreated         the remote topic is another one of the same name
    │   ├── SourcePurged            records after the last sync are gone from the source
    │   ├── SourceRecreated         the source topic is another one of the same name, or cut back
    │   └── SourceTruncated         the source has lost records that were copied, and others in their place
    ├── RecordsLost             retention removed source records that were not copied yet
    ├── ForeignWrite            somebody else wrote to the target partition
    ├── NotPassed               the target refused a batch (too large, not allowed)
    ├── NotFetched              the source refused the partition, or gave a broken batch
    ├── NotAligned              the remote topic cannot be made like the source's
    └── (retriable: the next attempt may well go on)
        ├── NotPlaced               a cluster did not say in time where the partition begins and ends
        ├── NotAcked                the target acknowledges others' batches and not this partition's
        └── OutOfSequence           the target ends elsewhere than this mirror had left it
"""

from __future__ import annotations

from kafka_client import TopicPartition
from kafka_client.errors import ErrorCode, KafkaError, MillstreamError


class MirrorError(MillstreamError):
    """A partition cannot be mirrored further for now. `tp` is the source's.

    `retriable`: no operator has to do anything first, as far as one can know.
    """

    retriable = False

    def __init__(self, tp: TopicPartition, what: str) -> None:
        super().__init__(tp, what)
        self.tp = tp
        self.what = what

    def __str__(self) -> str:
        return f"{self.tp}: {self.what}"


class PositionUnprovable(MirrorError):
    """The source's records and the target's do not meet where they should."""


class TargetNotEmpty(PositionUnprovable):
    """The target partition holds records, and there is no sync to say of what."""


class TargetTruncated(PositionUnprovable):
    """The target ends before the last sync."""


class TargetRecreated(PositionUnprovable):
    """The remote topic has another id than when the last sync was written: what it held is gone."""


class SourcePurged(PositionUnprovable):
    """The source begins after the last sync, and the target holds records copied since."""


class SourceRecreated(PositionUnprovable):
    """The source topic has another id, or less in it, than when the last sync was written."""


class SourceTruncated(PositionUnprovable):
    """The source's log was truncated below the position (KIP-320): the target holds records it does not."""


class RecordsLost(MirrorError):
    """The position is before the source's log start."""


class ForeignWrite(MirrorError):
    """The target gave a batch another offset than the next one."""


class NotPassed(MirrorError):
    """The target did not take a batch."""


class NotFetched(MirrorError):
    """The source does not give the partition's records, or gave a batch that is broken."""


class NotAligned(MirrorError):
    """The remote topic could not be made, or not given as many partitions, or the same configs."""


class NotPlaced(MirrorError):
    """What the position is decided by could not be asked for."""

    retriable = True


class NotAcked(MirrorError):
    """The target has acknowledged nothing of the partition for long, while it did of others."""

    retriable = True


class OutOfSequence(MirrorError):
    """The target does not take the next sequence number: a killed mirror's last batch came late and is not
    the same, or a second mirror of the flow runs. The place is found anew.
    """

    retriable = True


def of_setting(error: KafkaError, key: str, factor: int) -> KafkaError:
    """A refused replication factor with the setting that it comes from; any other error as it is."""
    if error.code != ErrorCode.INVALID_REPLICATION_FACTOR:
        return error
    return KafkaError(error.code, f"{error.message} (set by {key}={factor})")
