"""What goes wrong in a mirror, by what the operator does next.

MillstreamError
└── MirrorError                 the flow stops; nothing was skipped, nothing doubled
    ├── PositionUnprovable      where to go on cannot be proved: delete the flow's remote topics and its
    │   │                       offset-syncs topic, then mirror anew
    │   ├── TargetNotEmpty          records in the target that no sync accounts for
    │   ├── TargetTruncated         the target has lost records it had acknowledged
    │   ├── TargetRecreated         the remote topic is another one of the same name
    │   ├── SourcePurged            records after the last sync are gone from the source
    │   └── SourceRecreated         the source topic is another one of the same name, or cut back
    ├── RecordsLost             retention removed source records that were not copied yet
    ├── ForeignWrite            somebody else wrote to the target partition
    └── NotPassed               the target refused a batch (too large, not allowed)
"""

from __future__ import annotations

from logd.client import TopicPartition
from logd.errors import MillstreamError


class MirrorError(MillstreamError):
    """A partition cannot be mirrored further. `tp` is the source's."""

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


class RecordsLost(MirrorError):
    """The position is before the source's log start."""


class ForeignWrite(MirrorError):
    """The target gave a batch another offset than the next one."""


class NotPassed(MirrorError):
    """The target did not take a batch."""
