"""One partition led here: the partition, and the core that says what is committed."""

from __future__ import annotations

from collections.abc import Callable

from logd.broker.cluster.roles import LeaderRole
from logd.broker.partition import Partition
from logd.replication import Leader


class Led:
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
        partition.in_sync_replicas = len(core.isr)
        partition.take_role(LeaderRole(core, now_ms, lease, last_fetch_ms))

    @property
    def is_under_replicated(self) -> bool:
        """Whether a replica is not in sync."""
        return len(self.core.isr) < len(self.core.replicas)

    @property
    def spare(self) -> int:
        """How many in-sync replicas could be lost before acks=all is refused; less than 0: it is by now."""
        wanted = min(self.partition.min_insync_replicas, len(self.core.replicas))
        return len(self.core.isr) - wanted

    def follow_core(self) -> None:
        """The core may have moved: let the partition have its high watermark and its count of replicas."""
        core, partition = self.core, self.partition
        partition.in_sync_replicas = len(core.isr)
        if core.high_watermark > partition.high_watermark:
            partition.advance_high_watermark()
