"""The cores of replication as roles of a partition (`replication_role.ReplicationRole`)."""

from __future__ import annotations

from collections.abc import Callable

from logd.config.setting import LONG_MAX
from logd.replication import Follower, Leader


class LeaderRole:
    """The partition is led here."""

    __slots__ = ("_last_fetch_ms", "_lease", "_now_ms", "core")

    def __init__(
        self,
        core: Leader,
        now_ms: Callable[[], int],
        lease: Callable[[], bool],
        last_fetch_ms: Callable[[int], int],
    ) -> None:
        self._last_fetch_ms = last_fetch_ms
        self.core = core
        self._now_ms = now_ms
        self._lease = lease

    @property
    def is_leased(self) -> bool:
        """While ZooKeeper's session surely lives no other leader is elected."""
        return self._lease()

    @property
    def high_watermark(self) -> int:
        """The offset up to which all in-sync replicas have the log."""
        return self.core.high_watermark

    @property
    def leader_high_watermark(self) -> int:
        """The high watermark: this broker is the leader."""
        return self.core.high_watermark

    @property
    def epoch_start_offset(self) -> int:
        """The log's end when it became leader."""
        return self.core.epoch_start_offset

    @property
    def removable_to(self) -> int:
        """The offset before which every follower that is copying has the log."""
        return self.core.removable_to(self._now_ms(), self._last_fetch_ms)

    def removed(self, offset: int) -> None:
        """Note that deletions and markers before `offset` are gone; followers behind it copy from the start
        again.
        """
        self.core.removed(offset)

    def appended(self, log_end_offset: int) -> None:
        """Tell the core of an append, so that it expects the followers to fetch further."""
        self.core.appended(log_end_offset, self._now_ms())


class FollowerRole:
    """The partition is copied from its leader."""

    __slots__ = ("core",)

    def __init__(self, core: Follower) -> None:
        self.core = core

    @property
    def high_watermark(self) -> int:
        """The leader's, as far as it is known and the log goes."""
        return self.core.high_watermark

    @property
    def leader_high_watermark(self) -> int:
        """The leader's high watermark in its last response."""
        return self.core.leader_high_watermark

    @property
    def epoch_start_offset(self) -> int:
        """Another broker leads it."""
        return 0

    @property
    def is_leased(self) -> bool:
        """Another broker leads it."""
        return False

    @property
    def removable_to(self) -> int:
        """The end of the offsets: nobody copies from a follower, and only committed records are compacted."""
        return LONG_MAX

    def removed(self, offset: int) -> None:
        """Do nothing: no follower copies from this replica."""

    def appended(self, log_end_offset: int) -> None:
        """Do nothing: this replica has no followers."""
