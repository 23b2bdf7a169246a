"""The role of a partition among its replicas, as the partition sees it: it decides what is committed.

`logd.replication` implements the roles; its user passes one to `Partition.take_role`.
"""

from __future__ import annotations

from typing import Protocol

from logd.config.setting import LONG_MAX


class ReplicationRole(Protocol):
    """The role of a leader or a follower.

    A role calls nobody. Call `Partition.advance_high_watermark` after any event that may move the high
    watermark: a fetch of a follower, a change of the in-sync replicas, a response of the leader.
    """

    @property
    def high_watermark(self) -> int:
        """The offset up to which all in-sync replicas are known to have the records; this log may end before
        it.
        """

    @property
    def leader_high_watermark(self) -> int:
        """The high watermark that the leader reported last; this log may end before it. -1 if unknown."""

    @property
    def epoch_start_offset(self) -> int:
        """The start of the leader's epoch in its log; 0 for a role that does not lead.

        While the high watermark is below it, more may be committed than the leader knows (KIP-207).
        """

    @property
    def is_leased(self) -> bool:
        """True if this broker surely still leads the partition: otherwise no append may be acknowledged."""

    @property
    def removable_to(self) -> int:
        """The offset before which compaction may remove deletions and transaction markers now."""

    def removed(self, offset: int) -> None:
        """Note that compaction removes deletions or markers before ``offset``, in this step."""

    def appended(self, log_end_offset: int) -> None:
        """Note the new log end offset, which need not be on the disk. `high_watermark` may move."""


class Unassigned:
    """The role of a partition whose replicas are not known yet; its high watermark stays as it was."""

    __slots__ = ("high_watermark",)

    def __init__(self, high_watermark: int) -> None:
        self.high_watermark = high_watermark

    @property
    def leader_high_watermark(self) -> int:
        """-1: no leader has reported one."""
        return -1

    @property
    def epoch_start_offset(self) -> int:
        """0: nobody leads the partition here."""
        return 0

    @property
    def is_leased(self) -> bool:
        """False: nobody leads the partition here."""
        return False

    @property
    def removable_to(self) -> int:
        """The largest offset: no replica copies from this one."""
        return LONG_MAX

    def removed(self, offset: int) -> None:
        """Do nothing: no replica copies from this one."""

    def appended(self, log_end_offset: int) -> None:
        """Do nothing: nothing is appended before another role is set."""
