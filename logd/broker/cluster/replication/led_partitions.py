"""The partitions led here that have other replicas: who fetches from them, and who is in sync."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.topic_partition import TopicPartition
from logd.broker.cluster.replication.isr_changes import AskController, IsrChanges
from logd.broker.cluster.replication.led_partition import LedPartition
from logd.broker.cluster.replication.low_watermarks import LowWatermarks
from logd.broker.cluster.replication.replication_quota import ReplicationQuota, ThrottledFetch
from logd.broker.partition.fencing import LogDiverged
from logd.broker.partition.partition import Partition
from logd.broker.work.periodic import PeriodicTasks
from logd.replication import Leader, LeaderSettings, Progress
from logd.replication.divergence import NOTHING_STAYS
from logd.replication.progress import NEVER_MS

if TYPE_CHECKING:
    from kafka_client.wire.fetch import FetchPartition
    from logd.metadata.image import Change, ClusterImage, PartitionImage


log = logging.getLogger("logd.replication")

_OF_BROKERS = frozenset(("broker", "broker-gone", "replicas-offline"))
"""Changes by which a follower may join, or may no more."""


class LedPartitions:
    """`own` are this broker's id and epoch; `lease` says whether it surely has them still; `quota` is what
    followers may take that are throttled.
    """

    def __init__(
        self,
        image: ClusterImage,
        ask: AskController,
        *,
        own: Callable[[], tuple[int, int]],
        now_ms: Callable[[], int],
        replica_lag_time_max_ms: int,
        lease: Callable[[], bool] = lambda: True,
        quota: ReplicationQuota | None = None,
    ) -> None:
        self.led: dict[TopicPartition, LedPartition] = {}
        self._image = image
        self._own = own
        self._now_ms = now_ms
        self._lease = lease
        self._lag_ms = replica_lag_time_max_ms
        self.isr_changes = IsrChanges(ask, own=own, now_ms=now_ms, look=self._look)
        self.quota = quota
        self.low_watermarks = LowWatermarks(image.brokers)
        self._last_fetch_ms: dict[int, int] = {}
        """When each broker has fetched last, whatever it fetched."""
        self._rounds = PeriodicTasks()
        self._rounds.every(replica_lag_time_max_ms / 2, self._tick)

    async def stop(self) -> None:
        """Say nothing more to the controller."""
        await self._rounds.stop()
        await self.isr_changes.stop()

    def statistics(self) -> dict[str, int]:
        """Return the counts of partitions led, and of those with replicas that are not in sync."""
        behind = sum(led.is_under_replicated for led in self.led.values())
        return {"led": len(self.led), "under_replicated": behind, **self.isr_changes.statistics()}

    # Roles

    def lead(self, partition: Partition, state: PartitionImage) -> None:
        """Lead in the leader epoch of the image, from the log's end on; with another state of the same epoch
        take its replicas and its ISR.
        """
        current = self.led.get(partition.tp)
        if (
            current is not None
            and current.partition is partition
            and current.core.leader_epoch == state.leader_epoch
        ):
            current.core.image_changed(state, self._now_ms())
            return self._look(current)
        if state.leader_epoch > partition.log.highest_epoch:
            partition.log.begin_epoch(state.leader_epoch)
        partition.leader_epoch, partition.is_leader = state.leader_epoch, True
        core = Leader(
            partition.log,
            state,
            broker_id=self._own()[0],
            brokers=partial(self._epoch_of, partition.tp),
            high_watermark=partition.high_watermark,
            now_ms=self._now_ms(),
            settings=self._settings(partition),
        )
        if (
            current is not None
            and current.partition is partition
            and current.core.leader_epoch + 1 == state.leader_epoch
        ):
            core.succeed(current.core)
        led = self.led[partition.tp] = LedPartition(
            partition, core, self._now_ms, self._lease, self._last_fetch_ms_of
        )
        return self._look(led)

    def unlead(self, tp: TopicPartition) -> None:
        """Stop leading a partition: another broker leads it, or none."""
        if self.led.pop(tp, None) is not None:
            self.low_watermarks.fail_waiting(tp)

    def _settings(self, partition: Partition) -> LeaderSettings:
        return LeaderSettings(
            replica_lag_time_max_ms=self._lag_ms, min_insync_replicas=partition.min_insync_replicas
        )

    def _epoch_of(self, tp: TopicPartition, broker: int) -> int | None:
        """Return the epoch of a broker that may join the ISR.

        Return None if it is not alive, is shutting down, or the log directory of its replica has failed.
        """
        image = self._image.brokers.get(broker)
        if image is None or image.is_shutting_down or tp in self._image.offline_of(broker):
            return None
        return image.epoch

    def _last_fetch_ms_of(self, broker: int) -> int:
        return self._last_fetch_ms.get(broker, NEVER_MS)

    # News

    def fetches(self, broker: int) -> None:
        """Note that a broker has sent a fetch, which may name few of its partitions (KIP-227)."""
        self._last_fetch_ms[broker] = self._now_ms()

    def fetched(
        self, partition: Partition, requested: FetchPartition, broker: int, broker_epoch: int
    ) -> None:
        """Note that a follower fetches from an offset, and so has all records before it.

        Raises KafkaError if the fetch must not be answered: NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH,
        UNKNOWN_LEADER_EPOCH, OFFSET_OUT_OF_RANGE. A fetch after a divergence of the histories does not count;
        the response reports the divergence.
        """
        led = self.led.get(partition.tp)
        if led is None or led.partition is not partition:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{partition} is not led here")
        led.core.fetched(
            broker,
            requested.fetch_offset,
            requested.last_fetched_epoch,
            self._now_ms(),
            current_leader_epoch=requested.current_leader_epoch,
            broker_epoch=broker_epoch,
            log_start_offset=requested.log_start_offset,
        )
        self._look(led)
        if self.low_watermarks:
            self.low_watermarks.look(led)

    def check_removals(self, partition: Partition, broker: int, offset: int) -> None:
        """Check that a follower may copy from `offset`, which is less than the log's removal offset.

        Raises LogDiverged if it has to drop its log and copy from the start.
        """
        led = self.led.get(partition.tp)
        if led is None or not led.core.must_copy_again(broker, offset):
            return
        log.info(
            "%s: broker %d, whose log ends at %d, has to begin anew at %d: deletions or transaction markers "
            "before %d were compacted away while it was behind",
            partition,
            broker,
            offset,
            partition.log_start_offset,
            partition.log.removal_offset,
        )
        raise LogDiverged(NOTHING_STAYS, partition.log_start_offset)

    def throttle(self, follower: int) -> ThrottledFetch | None:
        """Return the throttle for a follower's fetch, or None if no quota is set."""
        if self.quota is None or not self.quota.is_set:
            return None
        return ThrottledFetch(self.quota, partial(self._is_in_sync, follower))

    def _is_in_sync(self, follower: int, partition: Partition) -> bool:
        led = self.led.get(partition.tp)
        return led is not None and follower in led.core.isr

    def readable_from(self, partition: Partition, offset: int) -> Sequence[Progress]:
        """Return the followers that have ``offset``, as `Leader.readable_from`, without those that are
        shutting down.
        """
        led = self.led.get(partition.tp)
        if led is None:
            return ()
        brokers = self._image.brokers
        return [
            follower
            for follower in led.core.readable_from(offset)
            if (image := brokers.get(follower.broker_id)) is not None and not image.is_shutting_down
        ]

    def image_changed(self, changes: Iterable[Change]) -> None:
        """Look again at in-sync replicas after changes of the image.

        Replicas whose broker was unknown may join now. Replicas whose broker is gone, or has lost the
        partition, are not waited for. A change of many partitions is applied in parts: a leader may know long
        before that such a replica is not in sync.
        """
        kinds = {change["type"] for change in changes}
        if "broker-gone" in kinds:
            for tp in self.low_watermarks.awaited:
                if (awaited := self.led.get(tp)) is not None:
                    self.low_watermarks.look(awaited)
        if kinds.isdisjoint(_OF_BROKERS):
            return
        now_ms = self._now_ms()
        for led in self.led.values():
            if led.is_under_replicated:
                led.core.reconsider(now_ms)
                self._look(led)

    async def _tick(self) -> None:
        """Find replicas that have been behind for too long; called periodically."""
        now_ms = self._now_ms()
        for led in tuple(self.led.values()):
            led.core.settings.min_insync_replicas = led.partition.min_insync_replicas
            led.core.tick(now_ms)
            self._look(led)

    def _look(self, led: LedPartition) -> None:
        led.follow_core()
        proposal = led.core.take_proposal()
        if proposal is not None and self.led.get(led.tp) is led:
            self.isr_changes.propose(led, proposal)
