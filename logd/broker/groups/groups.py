"""The shell around the group coordinator: finds a group's partition, loads it, and keeps house.

`logd.groups` decides; `partition` runs one partition of `__consumer_offsets`; here they are kept
together.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.topic_partition import TopicPartition
from logd.broker.coordinators.coordinator import Coordinator, partition_for
from logd.broker.groups.clock import GroupClock
from logd.broker.topics.topic import GROUP_OFFSETS

if TYPE_CHECKING:
    from kafka_client.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
    from kafka_client.wire.messages.list_groups import ListedGroup, ListGroupsRequest
    from logd.broker.groups.partition import GroupPartition
    from logd.broker.partition.partition import Partition
    from logd.broker.topics.catalog import TopicCatalog
    from logd.broker.topics.topic import Topic
    from logd.config.broker import BrokerConfig
    from logd.groups import GroupSettings
    from logd.storage import Appended, Log

MEMBER_NAME_LENGTH_MAX = 1_000
"""How much of a client's name goes into its member ids, which have to fit into records."""

log = logging.getLogger("logd.broker")


class Groups(Coordinator["GroupPartition"]):
    """All groups of this broker.

    Handlers ask for the `partition` of a group and talk to it; KafkaError(COORDINATOR_LOAD_IN_PROGRESS) while
    it is being recovered, NOT_COORDINATOR where there is none.
    """

    topic = GROUP_OFFSETS
    coordinates = "groups"

    def __init__(
        self,
        config: BrokerConfig,
        catalog: TopicCatalog,
        *,
        now_ms: Callable[[], int],
        create_topic: Callable[[str], Awaitable[Topic]],
        read_in: Callable[[Log], Awaitable[None]],
    ) -> None:
        super().__init__(catalog, create_topic, read_in)
        self._config = config
        self._now_ms = now_ms
        self._clock = GroupClock(now_ms, asyncio.get_running_loop().time, self._clock_set)

    def start(self) -> None:
        """Recover in the background what there is, and begin looking for expired offsets."""
        self._rounds.spawn(self._load_all())
        self._rounds.every(self._config.offsets_retention_check_interval_ms, self._expire_offsets)

    async def stop(self) -> None:
        """End; waiting requests are answered."""
        await self._rounds.stop()
        self._close_partitions()

    # Finding

    def partition(self, group_id: str) -> GroupPartition:
        """Return the coordinator partition of a group, ready to use. Raises KafkaError as `_loaded`."""
        topic = self._catalog.topics.get(GROUP_OFFSETS)
        if topic is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR, "there is no __consumer_offsets yet")
        return self._loaded(partition_for(group_id, len(topic.partitions)))

    async def matching(self, request: ListGroupsRequest) -> list[ListedGroup]:
        """Return the groups that a ListGroups request selects, of all partitions led here.

        Raises KafkaError as `_read_all` does.
        """
        return await self._read_all(lambda partition: partition.shard.matching(request))

    async def join(
        self, request: JoinGroupRequest, version: int, client_id: str | None, client_host: str
    ) -> JoinGroupResponse:
        """Answer JoinGroup. A new member's id is its instance id or client id with a UUID."""
        from uuid import uuid4  # messages have imported it by now

        partition = self.partition(request.group_id)
        name = client_id or ""
        new_id = f"{(request.group_instance_id or name)[:MEMBER_NAME_LENGTH_MAX]}-{uuid4()}"
        return await partition.join(request, version, name, f"/{client_host}", new_id)

    def transaction_ended(
        self, index: int, producer_id: int, producer_epoch: int, commit: bool, marker: Appended
    ) -> None:
        """Complete or drop the offsets that the producer committed in a transaction.

        Call it when the transaction's marker was written to partition `index` of `__consumer_offsets`.

        The log has checked the epoch; whatever is pending is of the transaction that ended.
        """
        partition = self._partitions.get(index)
        # One that is not at work yet reads the marker when it is loaded.
        if partition is not None:
            partition.transaction_ended(producer_id, commit, marker)

    @property
    def now_ms(self) -> int:
        """The coordinators' time."""
        return self._clock.now_ms()

    # Housekeeping

    def topics_deleted(self, names: Iterable[str]) -> None:
        """Forget the offsets committed for deleted topics. Call it when topics have been deleted."""
        deleted = frozenset(names)
        if GROUP_OFFSETS in deleted:
            self._leadership.forget()
            return self._close_partitions()
        for partition in self._partitions.values():
            partition.topics_deleted(deleted)

    async def _expire_offsets(self) -> None:
        for partition in tuple(self._partitions.values()):
            if partition.loaded:
                with self._reloading(partition):
                    partition.shard.expire(self.now_ms)
            await asyncio.sleep(0)

    def went_offline(self, partitions: Iterable[Partition]) -> None:
        """Close these partitions, whose log directory failed.

        The groups in them have no coordinator until the broker is restarted.
        """
        for partition in partitions:
            if partition.topic == GROUP_OFFSETS and (
                group_partition := self._partitions.pop(partition.index, None)
            ):
                group_partition.close()

    def _clock_set(self, by_ms: int) -> None:
        log.warning("the clock was set by %d ms", by_ms)
        for partition in self._partitions.values():
            partition.clock_set(by_ms)

    # Loading

    def _new_partition(self, index: int) -> GroupPartition:
        partition = self._catalog.partitions.get(TopicPartition(GROUP_OFFSETS, index))
        if partition is None:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{GROUP_OFFSETS}-{index} is offline")
        from kafka_client.records import Codec
        from logd.broker.groups.log import GroupLog  # a broker is ready before there is a group
        from logd.broker.groups.partition import GroupPartition

        codec = Codec(self._config.offsets_topic_compression_codec)
        group_log = GroupLog(partition, codec, self._now_ms)
        return GroupPartition(
            index, group_log, _settings(self._config), self._clock.now_ms, self._reload, self._deposed
        )

    def _close_partitions(self) -> None:
        partitions, self._partitions = self._partitions, {}
        self._elected.clear()
        for partition in partitions.values():
            partition.close()


def _settings(config: BrokerConfig) -> GroupSettings:
    from logd.groups import GroupSettings

    return GroupSettings(
        group_min_session_timeout_ms=config.group_min_session_timeout_ms,
        group_max_session_timeout_ms=config.group_max_session_timeout_ms,
        group_initial_rebalance_delay_ms=config.group_initial_rebalance_delay_ms,
        group_max_size=config.group_max_size,
        offset_metadata_max_bytes=config.offset_metadata_max_bytes,
        offsets_retention_ms=config.offsets_retention_minutes * 60_000,
    )
