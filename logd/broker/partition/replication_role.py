"""What a partition is among its replicas, as the partition sees it: who says what is committed.

`logd.replication` decides that; whoever joins the two hands such a role to `Partition.take_role`.
"""

from __future__ import annotations

from typing import Protocol

from logd.config.setting import LONG_MAX


class ReplicationRole(Protocol):
    """A leader's or a follower's. It calls nobody: after whatever else moves the high watermark (a follower
    has fetched, the in-sync replicas have changed, the leader has answered) call
    `Partition.advance_high_watermark`.
    """

    @property
    def high_watermark(self) -> int:
        """Where records end that all in-sync replicas have, as far as is known; this log may be behind."""

    @property
    def leader_high_watermark(self) -> int:
        """The leader's, as it said last: this log may end before it. -1 if that is not known."""

    @property
    def epoch_start_offset(self) -> int:
        """Where its leader epoch began in the leader's log; 0 of anybody else. While the high watermark is
        before it, more may be committed than the leader knows (KIP-207).
        """

    @property
    def is_leased(self) -> bool:
        """Whether this broker surely leads the partition still: else nothing may be acknowledged."""

    @property
    def removable_to(self) -> int:
        """Before which offset compaction may remove deletions and transaction markers now."""

    def removed(self, offset: int) -> None:
        """Compaction removes some that are before ``offset``, in this step."""

    def appended(self, log_end_offset: int) -> None:
        """The log ends there now; nothing says yet that the disk has it. `high_watermark` may be another."""


class Unassigned:
    """The role of a partition whose replicas nobody has named yet: what was known to be committed stays."""

    __slots__ = ("high_watermark",)

    def __init__(self, high_watermark: int) -> None:
        self.high_watermark = high_watermark

    @property
    def leader_high_watermark(self) -> int:
        """Nobody has told."""
        return -1

    @property
    def epoch_start_offset(self) -> int:
        """Nobody leads it here."""
        return 0

    @property
    def is_leased(self) -> bool:
        """Nobody leads it here."""
        return False

    @property
    def removable_to(self) -> int:
        """Nobody copies from it."""
        return LONG_MAX

    def removed(self, offset: int) -> None:
        """Nobody copies from it."""

    def appended(self, log_end_offset: int) -> None:
        """Nothing is appended before there is another role."""
