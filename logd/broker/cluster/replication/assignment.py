"""The roles of the partitions held here, as the image of the cluster says: led, followed, or neither."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from logd.broker.cluster.replication.followed_partition import FollowedPartition
from logd.broker.cluster.replication.led_partitions import LedPartitions
from logd.broker.cluster.replication.replica_fetchers import ReplicaFetchers
from logd.broker.cluster.replication.roles import FollowerRole
from logd.broker.partition.partition import Partition
from logd.replication import Follower

if TYPE_CHECKING:
    from logd.metadata.image import PartitionImage

NO_LEADER = -1


class Assignment:
    """The assignment of roles to partitions held here.

    Call `assign` whenever a partition is opened or has another state, and `unassign` before it is closed.
    `assigned` is called with each partition, and whether it is led here.
    """

    def __init__(
        self,
        node_id: int,
        leading: LedPartitions,
        fetchers: ReplicaFetchers,
        assigned: Callable[[Partition, bool], None] = lambda partition, is_leader: None,
    ) -> None:
        self.node_id = node_id
        self._leading = leading
        self._fetchers = fetchers
        self._assigned = assigned

    @property
    def fetchers(self) -> ReplicaFetchers:
        """Who copies what is followed."""
        return self._fetchers

    async def rest(self, partition: Partition, state: PartitionImage) -> None:
        """Have nothing of the role before under way where this state brings another one: no core of a role
        may begin while its log is being cut.
        """
        followed = self._fetchers.following(partition.tp)
        if followed is not None and (followed.core.leader, followed.core.leader_epoch) == (
            state.leader,
            state.leader_epoch,
        ):
            return
        self._fetchers.unfollow(partition.tp)
        await self._fetchers.rest(partition.tp)

    def assign(self, partition: Partition, state: PartitionImage) -> None:
        """Have the role of this state; one that it has already it keeps."""
        if state.leader == self.node_id:
            self._fetchers.unfollow(partition.tp)
            self._leading.lead(partition, state)
            self._assigned(partition, True)
            return
        self._leading.unlead(partition.tp)
        followed = self._fetchers.following(partition.tp)
        if (
            followed is not None
            and followed.partition is partition
            and (followed.core.leader, followed.core.leader_epoch) == (state.leader, state.leader_epoch)
        ):
            return
        core = Follower(
            partition.log,
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            high_watermark=partition.high_watermark,
        )
        partition.leader_epoch, partition.is_leader = state.leader_epoch, False
        partition.take_role(FollowerRole(core))
        if state.leader == NO_LEADER:
            self._fetchers.unfollow(partition.tp)
        else:
            self._fetchers.follow(FollowedPartition(partition, core))
        self._assigned(partition, False)

    def unassign(self, partition: Partition) -> None:
        """Take a partition's role away; it is not held here any more."""
        self._leading.unlead(partition.tp)
        self._fetchers.unfollow(partition.tp)
        self._assigned(partition, False)

    async def stop(self) -> None:
        """Stop leading and following all partitions."""
        await self._fetchers.stop()
        await self._leading.stop()
