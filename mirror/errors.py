"""Errors of a mirrored partition, grouped by what the operator does next.

MillstreamError
└── MirrorError                 the partition is quarantined; no record was skipped or copied twice
    ├── PositionUnprovable      no safe position to resume from: delete the flow's remote topics and its
    │   │                       offset-syncs topic, then start the flow again; or see `discontinuities`
    │   ├── TargetNotEmpty          records in the target that no sync accounts for
    │   ├── TargetTruncated         the target has lost records it had acknowledged
    │   ├── TargetRecreated         the remote topic was deleted and created again
    │   ├── SourcePurged            records after the last sync are gone from the source
    │   ├── SourceRecreated         the source topic was deleted and created again, or truncated
    │   └── SourceTruncated         the source has lost copied records and has others at their offsets
    ├── RecordsLost             retention removed source records that were not copied yet
    ├── ForeignWrite            another client wrote to the target partition
    ├── NotPassed               the target refused a batch (too large, not allowed)
    ├── NotFetched              the source refused the fetch or returned a corrupt batch
    ├── NotAligned              the remote topic cannot be created or altered to match the source's
    └── (retriable: the next attempt may succeed)
        ├── NotPlaced               a cluster did not return the partition's log start and end in time
        ├── NotAcked                the target acknowledges other partitions' batches but not this one's
        └── OutOfSequence           the target's last sequence number is not the one this mirror sent last
"""

from __future__ import annotations

from kafka_client import TopicPartition
from kafka_client.errors import ErrorCode, KafkaError, MillstreamError


class MirrorError(MillstreamError):
    """An error that stops the copy of one partition. `tp` is the source partition.

    `retriable` is True if the next attempt may succeed without action by an operator.
    """

    retriable = False

    def __init__(self, tp: TopicPartition, what: str) -> None:
        super().__init__(tp, what)
        self.tp = tp
        self.what = what

    def __str__(self) -> str:
        return f"{self.tp}: {self.what}"


class PositionUnprovable(MirrorError):
    """The position to resume from cannot be derived from the last sync and the two logs."""


class TargetNotEmpty(PositionUnprovable):
    """The target partition has records, but no sync says which source records they are."""


class TargetTruncated(PositionUnprovable):
    """The target's log end is before the last sync's offset."""


class TargetRecreated(PositionUnprovable):
    """The remote topic's id has changed since the last sync, so its earlier records are gone."""


class SourcePurged(PositionUnprovable):
    """The source's log start is after the last sync, and the target has records copied since that sync."""


class SourceRecreated(PositionUnprovable):
    """The source topic's id has changed since the last sync, or its log ends before the sync's offset."""


class SourceTruncated(PositionUnprovable):
    """The source truncated its log below the position (KIP-320), so the target has records that it lost."""


class RecordsLost(MirrorError):
    """The position is before the source's log start: retention deleted records that were not copied."""


class ForeignWrite(MirrorError):
    """The target appended a batch at another offset than expected, so another client writes there."""


class NotPassed(MirrorError):
    """The target refused a batch."""


class NotFetched(MirrorError):
    """The source refuses to return the partition's records, or returned a corrupt batch."""


class NotAligned(MirrorError):
    """The remote topic could not be created, or could not get the source's partition count or configs."""


class NotPlaced(MirrorError):
    """A request that is needed to compute the position failed or timed out."""

    retriable = True


class NotAcked(MirrorError):
    """The target has not acknowledged the partition's batches for `ACK_SECONDS`, but others' since."""

    retriable = True


class OutOfSequence(MirrorError):
    """The target refuses the next sequence number, and the position is computed again.

    Either a killed mirror's last batch arrived late with other contents, or a second mirror of the flow runs.
    """

    retriable = True


def with_setting(error: KafkaError, key: str, factor: int) -> KafkaError:
    """Return `error` with the setting named if a replication factor was refused, else unchanged."""
    if error.code != ErrorCode.INVALID_REPLICATION_FACTOR:
        return error
    return KafkaError(error.code, f"{error.message} (set by {key}={factor})")
