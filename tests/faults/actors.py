"""The clients of a simulated broker: each does one thing after another, and notes what it is told."""

from __future__ import annotations

import asyncio
import random
from abc import ABC, abstractmethod
from typing import Any

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire.messages.delete_topics import DeleteTopicsRequest
from kafka_client.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafka_client.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kafka_client.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from logd.storage import NotResident
from logd.storage.disk import read_slice
from tests.faults.consumer import batches, values
from tests.faults.simulation import Client, SimulatedBroker
from tests.faults.world import Topic, Where, World
from tests.support.requests import (
    BROKER_CONFIG,
    TOPIC_CONFIG,
    offset_commit,
    record_deletion,
    setting_change,
    topic_creation,
    topic_growth,
)

NAMES = ("red", "green", "blue")
LATER = frozenset(
    (
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_COORDINATOR,
    )
)


class Unexpected(AssertionError):
    """An error nobody deserves here: a request that is refused, or told to wait for too long.

    It is all that may happen to a client of a broker that lost records, or whose machine has died.
    """


def granted(code: int, message: str | None = None) -> None:
    """Unexpected, if the answer to a request is an error."""
    if code:
        raise Unexpected(f"{ErrorCode(code).name} {message or ''}".rstrip())


class Actor(ABC):
    """Who does something, again and again; `step` does it once."""

    name = ""

    def __init__(self, world: World, broker: SimulatedBroker, rng: random.Random) -> None:
        self.world = world
        self.broker = broker
        self.rng = rng
        self.client = Client(broker)

    async def run(self, steps: int) -> None:
        """So many steps, with pauses."""
        for _ in range(steps):
            await asyncio.sleep(self.rng.choice((0, 0.001, 0.01, 0.1)))
            await self.step()

    @abstractmethod
    async def step(self) -> None:
        """Do something."""

    def acknowledged(self) -> None:
        """Count an acknowledgement."""
        self.world.acknowledgements += 1

    async def until_taken(self, message: Any, version: int) -> Any:
        """Ask again while the answer is to wait."""
        for _ in range(400):
            response = await self.client.request(message, version)
            if response.error_code not in LATER:
                return response
            await asyncio.sleep(0.05)
        raise Unexpected(f"{type(message).__name__}: {ErrorCode(response.error_code).name} for 20 s")


class Admin(Actor):
    """Creates, grows, alters and deletes topics, and deletes their records."""

    name = "admin"

    async def step(self) -> None:
        names = {topic.name for topic in self.world.topics if topic.there is not False}
        free = [name for name in NAMES if name not in names]
        topics = [topic for topic in self.world.known_topics if not topic.busy]
        if free and (not topics or self.rng.random() < 0.4):
            return await self._create(self.rng.choice(free))
        if not topics:
            return None
        topic = self.rng.choice(topics)
        way = self.rng.choice(
            (self._delete, self._grow, self._alter, self._delete_records, self._alter_broker)
        )
        return await way(topic)

    async def _create(self, name: str) -> None:
        count, configs = self.rng.randint(1, 3), {"max.message.bytes": str(self.rng.randint(10_000, 99_999))}
        topic = Topic(len(self.world.topics), name, count, configs)
        self.world.topics.append(topic)
        (created,) = (await self.client.request(topic_creation(name, count, configs), 7)).topics
        granted(created.error_code, created.error_message)
        topic.there, topic.topic_id = True, created.topic_id
        self.acknowledged()

    async def _delete(self, topic: Topic) -> None:
        topic.there = None
        request = DeleteTopicsRequest(topic_names=[topic.name])
        (deleted,) = (await self.client.request(request, 5)).responses
        granted(deleted.error_code, deleted.error_message)
        topic.there = False
        self.acknowledged()

    async def _grow(self, topic: Topic) -> None:
        topic.asked_partitions = topic.partitions + 1
        request = topic_growth(topic.name, topic.asked_partitions)
        (grown,) = (await self.client.request(request, 3)).results
        granted(grown.error_code, grown.error_message)
        topic.partitions = topic.asked_partitions
        self.acknowledged()

    async def _alter(self, topic: Topic) -> None:
        value = str(self.rng.randint(10_000, 99_999))
        topic.asked_configs = {**topic.configs, "max.message.bytes": value}
        await self._set(TOPIC_CONFIG, topic.name, value)
        topic.configs, topic.asked_configs = topic.asked_configs, None

    async def _alter_broker(self, _: Topic) -> None:
        value = str(self.rng.randint(10_000, 99_999))
        self.world.broker_configs.append(value)
        await self._set(BROKER_CONFIG, "", value)
        self.world.broker_configs = [value]

    async def _set(self, kind: int, name: str, value: str) -> None:
        key = "max.message.bytes" if kind == TOPIC_CONFIG else "message.max.bytes"
        response = await self.client.request(setting_change(kind, name, key, value), 1)
        granted(response.responses[0].error_code, response.responses[0].error_message)
        self.acknowledged()

    async def _delete_records(self, topic: Topic) -> None:
        where = Where(topic, self.rng.randrange(topic.partitions))
        partition = self.broker.catalog.partitions[topic.name, where.index]
        offset = self.rng.randint(partition.log_start_offset, partition.high_watermark)
        part = self.world.part(where)
        part.start_asked = max(part.start_asked, offset)
        response = await self.client.request(record_deletion(topic.name, where.index, offset), 2)
        granted(response.topics[0].partitions[0].error_code)
        self.acknowledged()


class Committer(Actor):
    """A consumer that commits offsets, as a member of a group that has one."""

    name = "committer"
    group = "consumers"

    async def run(self, steps: int) -> None:
        self._generation, self._member = -1, ""
        await super().run(steps)

    async def step(self) -> None:
        if self._generation < 0 or self.rng.random() < 0.2:
            await self._join()
        where = self.world.any_part()
        if where is None:
            return
        offset = self.world.offset(self.group, where)
        request = offset_commit(
            self.group,
            where.topic.name,
            where.index,
            offset,
            generation=self._generation,
            member=self._member,
        )
        where.topic.busy += 1
        answer = await self.client.request(request, 8)
        where.topic.busy -= 1
        code = answer.topics[0].partitions[0].error_code
        if code in (
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.REBALANCE_IN_PROGRESS,
            ErrorCode.ILLEGAL_GENERATION,
        ):
            self._generation = -1  # the session is over
        elif code:
            raise Unexpected(f"offset of {where}: {ErrorCode(code).name}")
        else:
            committed = self.world.commits(self.group, where)
            committed.promised = max(committed.promised, offset)
            self.acknowledged()

    async def _join(self) -> None:
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=6_000,
            rebalance_timeout_ms=6_000,
            member_id=self._member,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
        )
        joined = await self.until_taken(request, 7)
        while joined.error_code in (ErrorCode.MEMBER_ID_REQUIRED, ErrorCode.UNKNOWN_MEMBER_ID):
            request.member_id = joined.member_id
            joined = await self.until_taken(request, 7)
        granted(joined.error_code)
        self._member = joined.member_id
        sync = SyncGroupRequest(
            group_id=self.group,
            generation_id=joined.generation_id,
            member_id=self._member,
            assignments=[SyncGroupRequestAssignment(member_id=self._member, assignment=b"all")],
        )
        synced = await self.until_taken(sync, 3)
        granted(synced.error_code)
        self._generation = joined.generation_id
        self.acknowledged()


class Reader(Actor):
    """Reads records and committed offsets, and acts on them: none of them may be gone afterwards."""

    name = "reader"

    async def step(self) -> None:
        where = self.world.any_part()
        if where is None:
            return
        partition = self.broker.catalog.partitions.get((where.topic.name, where.index))
        if partition is None:
            return
        try:
            piece = partition.read(partition.log_start_offset, 1 << 20, committed=self.rng.random() < 0.5)
        except (KafkaError, NotResident):
            return
        if piece is not None:
            reads = self.world.part(where).reads
            for header, records in batches(read_slice(piece)):
                offset_values = values(header, records)
                self.world.read(where, header.partition_leader_epoch, offset_values)
                reads.update(offset_values)
        for group in ("consumers", "group-of-tx0", "group-of-tx1"):
            await self._ask_offset(group, where)

    async def _ask_offset(self, group: str, where: Where) -> None:
        topic = OffsetFetchRequestTopics(name=where.topic.name, partition_indexes=[where.index])
        group_request = OffsetFetchRequestGroup(group_id=group, topics=[topic])
        where.topic.busy += 1
        response = await self.client.request(
            OffsetFetchRequest(groups=[group_request], require_stable=True), 8
        )
        where.topic.busy -= 1
        group_response = response.groups[0]
        if group_response.error_code or group_response.topics[0].partitions[0].error_code:
            return
        committed = self.world.commits(group, where)
        offset = group_response.topics[0].partitions[0].committed_offset
        if offset in committed.offsets:  # else one of an earlier topic of this name
            committed.promised = max(committed.promised, offset)


class Housekeeper(Actor):
    """Actor that does what the broker does by the clock, and more often."""

    name = "housekeeper"

    async def step(self) -> None:
        housekeeping = self.broker.housekeeping
        way = self.rng.choice(
            (
                housekeeping.flush_all,
                housekeeping.write_checkpoints,
                housekeeping.apply_retention,
                housekeeping.close_idle_files,
            )
        )
        await way()
