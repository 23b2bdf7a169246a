"""A partition led here: the partition, and the core that decides what is committed."""

from __future__ import annotations

from collections.abc import Callable

from logd.broker.cluster.replication.roles import LeaderRole
from logd.broker.partition.partition import Partition
from logd.replication import Leader


class LedPartition:
    """The partition has its role from the beginning."""

    __slots__ = ("core", "partition", "tp")

    def __init__(
        self,
        partition: Partition,
        core: Leader,
        now_ms: Callable[[], int],
        lease: Callable[[], bool],
        last_fetch_ms: Callable[[int], int],
    ) -> None:
        self.partition = partition
        self.core = core
        self.tp = partition.tp
        self._count_replicas()
        partition.take_role(LeaderRole(core, now_ms, lease, last_fetch_ms))

    @property
    def is_under_replicated(self) -> bool:
        """True if a replica is not in sync."""
        return len(self.core.isr) < len(self.core.replicas)

    @property
    def spare(self) -> int:
        """Return how many in-sync replicas could be lost before acks=all is refused; less than 0 if it is
        refused already.
        """
        return self.partition.in_sync_replicas - self.partition.required_in_sync

    def follow_core(self) -> None:
        """Give the core's high watermark and count of in-sync replicas to the partition. Call it after the
        core changed.
        """
        core, partition = self.core, self.partition
        self._count_replicas()
        if core.high_watermark > partition.high_watermark:
            partition.advance_high_watermark()

    def _count_replicas(self) -> None:
        self.partition.replica_count = len(self.core.replicas)
        self.partition.in_sync_replicas = len(self.core.isr)
