"""The shell around the group coordinator's core, with a stand-in for the broker: loading, clocks, closing."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.records import ABORT, COMMIT, Codec, build_batch, build_end_marker, read_header
from kafka_client.wire.messages.find_coordinator import FindCoordinatorRequest
from kafka_client.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafka_client.wire.messages.list_groups import ListedGroup, ListGroupsRequest
from kafka_client.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from logd.broker.coordinators.coordinator import partition_for
from logd.broker.groups.clock import GroupClock
from logd.broker.groups.groups import Groups
from logd.broker.groups.log import GroupLog
from logd.broker.topics.topic import GROUP_OFFSETS
from logd.config.broker import BrokerConfig
from logd.groups import (
    CoordinatorRecord,
    Producing,
    Stored,
    TransactionEnd,
    encode_record,
)
from logd.groups.records import OffsetCommitKey, OffsetCommitValue, OffsetRecord
from logd.storage import Appended
from tests.support.waiting import until

COUNT = 3
MARKER = Appended(0, 0, -1, 0)
"""The offset at which a marker was appended, which is committed."""


class PaperPartition:
    """A partition with its batches in a list, read back one by one; tests set `guard` and `flushing`."""

    topic = GROUP_OFFSETS
    index = 0
    log = None
    leader_epoch = 0
    is_leased = True

    def __init__(self) -> None:
        self.batches: list[bytes] = []
        self.max_message_bytes = 10_000
        self.log_start_offset = 0
        self.failure: KafkaError | None = None
        self.guard: Any = None
        self.open_transactions: set[tuple[int, int]] = set()
        self.flushing: asyncio.Future[None] | None = None

    @property
    def log_end_offset(self) -> int:
        return sum(read_header(batch).count for batch in self.batches)

    def append(self, batch: bytes, now_ms: int) -> Any:
        first = self.log_end_offset
        self.batches.append(struct.pack(">q", first) + batch[8:])
        return SimpleNamespace(base_offset=first)

    def has_open_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        return (producer_id, producer_epoch) in self.open_transactions

    def flushed(self, appended: Any) -> asyncio.Future[None] | None:
        return self.flushing

    def read_all(self) -> Iterator[memoryview]:
        for batch in self.batches:
            if self.failure is not None:
                raise self.failure
            yield memoryview(batch)


class PaperBroker:
    """A broker's parts that `Groups` uses."""

    def __init__(self, partitions: list[PaperPartition]) -> None:
        topic = SimpleNamespace(partitions=partitions)
        self.catalog: Any = SimpleNamespace(
            topics={GROUP_OFFSETS: topic} if partitions else {},
            partitions={(GROUP_OFFSETS, index): partition for index, partition in enumerate(partitions)},
        )
        self.config = BrokerConfig.of({"group.initial.rebalance.delay.ms": "0"})
        self.time_ms = 1_000_000
        self.creation: KafkaError | None = None

    def now_ms(self) -> int:
        return self.time_ms

    async def create_topic(self, name: str) -> Any:
        if self.creation is not None:
            raise self.creation

    async def read_in(self, log: Any) -> None:
        pass

    def groups(self) -> Groups:
        return Groups(
            self.config,
            self.catalog,
            now_ms=self.now_ms,
            create_topic=self.create_topic,
            read_in=self.read_in,
        )


def offset(group: str, value: int, partition: int = 0) -> CoordinatorRecord:
    key = OffsetCommitKey(group=group, topic="t", partition=partition)
    return OffsetRecord(key, OffsetCommitValue(offset=value, commit_timestamp=1_000_000))


def batch_of(*records: CoordinatorRecord, **facts: Any) -> bytes:
    return build_batch([(1_000_000, *encode_record(record), ()) for record in records], **facts)


def end_marker(kind: int, producer_id: int) -> bytes:
    return build_end_marker(
        kind, timestamp_ms=1_000_000, producer_id=producer_id, producer_epoch=0, coordinator_epoch=0
    )


def is_loaded(groups: Groups, group: str) -> bool:
    try:
        return bool(groups.partition(group))
    except KafkaError:
        return False


def fetched(groups: Groups, group: str) -> dict[int, int]:
    topics = groups.partition(group).shard.fetch(OffsetFetchRequestGroup(group_id=group, topics=None)).topics
    return {part.partition_index: part.committed_offset for topic in topics for part in topic.partitions}


def matching(groups: Groups) -> list[ListedGroup]:
    """Return the groups that ListGroups lists, when nothing has to be waited for."""
    with pytest.raises(StopIteration) as ended:
        groups.matching(ListGroupsRequest()).send(None)
    listed: list[ListedGroup] = ended.value.value
    return listed


def join_request(group: str) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="test",
        protocols=[JoinGroupRequestProtocol(name="range")],
    )


def code_of(call: Callable[[], object]) -> ErrorCode:
    with pytest.raises(KafkaError) as raised:
        call()
    return raised.value.code


def test_while_a_partition_is_loaded_its_groups_wait_and_others_go_on() -> None:
    async def run() -> None:
        partitions = [PaperPartition() for _ in range(COUNT)]
        home = partition_for("g", COUNT)
        partitions[home].batches = [
            batch_of(*(offset("g", number, index) for index in range(100))) for number in range(200)
        ]
        groups = PaperBroker(partitions).groups()
        groups.start()
        assert code_of(lambda: groups.partition("g")) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert code_of(lambda: matching(groups)) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        other = next(name for name in map(str, range(100)) if partition_for(name, COUNT) != home)
        assert fetched(groups, other) == {}

        turns = 0

        def loaded() -> bool:
            nonlocal turns
            turns += 1
            return is_loaded(groups, "g")

        await until(loaded)
        assert turns > 3, "loading held the loop"
        assert fetched(groups, "g") == dict.fromkeys(range(100), 199)
        assert [group.group_id for group in matching(groups)] == ["g"]
        await groups.stop()

    asyncio.run(run())


async def test_a_partition_that_cannot_be_read_is_tried_again() -> None:
    partitions = [PaperPartition() for _ in range(COUNT)]
    home = partitions[partition_for("g", COUNT)]
    home.batches = [batch_of(offset("g", 7))]
    home.failure = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
    groups = PaperBroker(partitions).groups()
    groups.start()
    for _ in range(10):
        await asyncio.sleep(0)
        assert code_of(lambda: groups.partition("g")) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    home.failure = None
    await until(lambda: is_loaded(groups, "g"))
    assert fetched(groups, "g") == {0: 7}
    await groups.stop()


def test_transactions_are_read_with_their_ends() -> None:
    partition = PaperPartition()
    facts = {"producer_epoch": 0, "transactional": True, "base_sequence": 0}
    partition.batches = [
        batch_of(offset("g", 1)),
        batch_of(offset("g", 2), producer_id=1, **facts),
        batch_of(offset("g", 3, partition=1), producer_id=2, **facts),
        end_marker(COMMIT, 2),
        end_marker(ABORT, 1),
        batch_of(offset("g", 4, partition=2), producer_id=1, **facts),
    ]
    log = GroupLog(partition, Codec.NONE, lambda: 0)  # type: ignore[arg-type]
    assert list(log.read()) == [
        Stored(0, offset("g", 1)),
        Stored(0, offset("g", 2), producer_id=1),
        Stored(0, offset("g", 3, partition=1), producer_id=2),
        TransactionEnd(2, committed=True),
        TransactionEnd(1, committed=False),
        Stored(0, offset("g", 4, partition=2), producer_id=1),
    ]


def test_a_record_that_cannot_be_read_is_left_out() -> None:
    partition = PaperPartition()
    broken = build_batch([(0, b"\x00\x01\x00\x09g", b"", ()), (0, None, b"", ())])
    partition.batches = [broken, batch_of(offset("g", 1))]
    log = GroupLog(partition, Codec.NONE, lambda: 0)  # type: ignore[arg-type]
    assert list(log.read()) == [Stored(0, offset("g", 1))]


def test_records_are_appended_as_one_batch_with_the_codec_asked_for() -> None:
    partition = PaperPartition()
    log = GroupLog(partition, Codec.LZ4, lambda: 5)  # type: ignore[arg-type]
    assert log.append([offset("g", 1), offset("g", 2)]) == 0
    assert log.append([offset("g", 3)]) == 2
    header = read_header(partition.batches[0])
    assert (header.count, header.codec, header.base_timestamp) == (2, Codec.LZ4, 5)
    assert list(log.read()) == [Stored(at, offset("g", at + 1)) for at in range(3)]


def test_a_producer_is_admitted_before_its_offsets_are_written() -> None:
    partition = PaperPartition()
    log = GroupLog(partition, Codec.NONE, lambda: 5)  # type: ignore[arg-type]
    admissions: list[Any] = []
    partition.guard = SimpleNamespace(admit=lambda *who, implicit: admissions.append((*who, implicit)))
    producing = Producing("tid", 7, 3, implicit=True)
    assert log.append_in_transaction([offset("g", 1), offset("g", 2)], producing) == 0
    assert admissions == [("tid", 7, 3, GROUP_OFFSETS, 0, True)]
    header = read_header(partition.batches[0])
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 3, -1)
    assert header.is_transactional
    assert list(log.read()) == [Stored(at, offset("g", at + 1), 7) for at in range(2)]

    partition.open_transactions.add((7, 3))
    assert log.append_in_transaction([offset("g", 3)], producing) == 2
    assert len(admissions) == 1
    log.append_in_transaction([offset("g", 4)], producing._replace(producer_epoch=4, implicit=False))
    assert admissions[1:] == [("tid", 7, 4, GROUP_OFFSETS, 0, False)]

    def refuse(*_: Any, implicit: bool) -> None:
        raise KafkaError(ErrorCode.TRANSACTION_ABORTABLE)

    partition.guard = SimpleNamespace(admit=refuse)
    count = len(partition.batches)
    other = producing._replace(producer_id=8)
    assert code_of(lambda: log.append_in_transaction([offset("g", 5)], other)) is (
        ErrorCode.TRANSACTION_ABORTABLE
    )
    too_large = [offset("g" * 20_000, 5)]
    assert code_of(lambda: log.append_in_transaction(too_large, other)) is ErrorCode.RECORD_LIST_TOO_LARGE
    assert len(partition.batches) == count


async def test_a_marker_that_comes_while_the_log_is_read_counts() -> None:
    partition = PaperPartition()
    facts = {"producer_epoch": 0, "transactional": True}
    partition.batches = [
        batch_of(offset("g", 1), producer_id=1, **facts),
        batch_of(offset("g", 2, partition=1), producer_id=2, **facts),
        batch_of(offset("g", 3, partition=2), producer_id=3, **facts),
    ]
    groups = PaperBroker([partition]).groups()
    groups.start()
    groups.transaction_ended(0, 1, 0, True, MARKER)  # not begun to load: the log has it, or this does
    assert not is_loaded(groups, "g")
    groups.transaction_ended(0, 1, 0, True, MARKER)
    groups.transaction_ended(0, 2, 0, False, MARKER)
    await until(lambda: is_loaded(groups, "g"))
    assert fetched(groups, "g") == {0: 1}
    stable = OffsetFetchRequestGroup(
        group_id="g", topics=[OffsetFetchRequestTopics(name="t", partition_indexes=[0, 1, 2])]
    )
    partitions = groups.partition("g").shard.fetch(stable, require_stable=True).topics[0].partitions
    assert [row.error_code for row in partitions] == [0, 0, ErrorCode.UNSTABLE_OFFSET_COMMIT]
    groups.transaction_ended(0, 3, 0, True, MARKER)
    assert fetched(groups, "g") == {0: 1, 2: 3}
    await groups.stop()


async def test_what_was_appended_is_answered_for_once_it_is_flushed() -> None:
    paper = PaperPartition()
    groups = PaperBroker([paper]).groups()
    partition = groups.partition("g")
    await partition.flushed()
    partition.shard.store.write([offset("g", 1)], 0)
    await partition.flushed()
    paper.flushing = asyncio.get_running_loop().create_future()
    waiting = asyncio.create_task(partition.flushed())
    await asyncio.sleep(0)
    assert not waiting.done()
    paper.flushing.set_exception(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
    with pytest.raises(KafkaError, match="NOT_COORDINATOR"):
        await waiting
    await groups.stop()


@pytest.mark.parametrize("group", ["g" * 20_000, "g" * 40_000], ids=["too large a batch", "too long a name"])
def test_what_does_not_fit_is_refused(group: str) -> None:
    partition = PaperPartition()
    log = GroupLog(partition, Codec.NONE, lambda: 5)  # type: ignore[arg-type]
    assert code_of(lambda: log.append([offset(group, 1)])) is ErrorCode.RECORD_LIST_TOO_LARGE
    assert partition.batches == []


async def test_without_the_topic_there_is_no_coordinator() -> None:
    groups = PaperBroker([]).groups()
    assert code_of(lambda: groups.partition("g")) is ErrorCode.NOT_COORDINATOR
    assert matching(groups) == []


async def test_two_that_create_the_topic_at_once_both_find_it() -> None:
    broker = PaperBroker([])
    groups = broker.groups()
    broker.creation = KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS)
    await groups.ensure_topic()
    broker.creation = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
    with pytest.raises(KafkaError):
        await groups.ensure_topic()


async def test_who_waits_is_told_when_the_broker_stops() -> None:
    broker = PaperBroker([PaperPartition() for _ in range(COUNT)])
    groups = broker.groups()
    groups.start()
    first = await groups.join(join_request("g"), 3, "me", "127.0.0.1")
    assert (first.error_code, first.generation_id) == (0, 1)
    waiting = asyncio.create_task(groups.join(join_request("g"), 3, "me", "127.0.0.1"))
    await asyncio.sleep(0)
    await groups.stop()
    assert (await waiting).error_code == ErrorCode.NOT_COORDINATOR


async def test_member_ids_are_the_clients_name_or_the_instances_and_something_unique() -> None:
    groups = PaperBroker([PaperPartition()]).groups()
    dynamic = await groups.join(join_request("a"), 4, "me", "127.0.0.1")
    assert dynamic.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert dynamic.member_id.startswith("me-")
    assert len(dynamic.member_id) == len("me-") + 36
    static = join_request("b")
    static.group_instance_id = "i1"
    assert (await groups.join(static, 5, "me", "127.0.0.1")).member_id.startswith("i1-")
    endless = await groups.join(join_request("c"), 3, "x" * 30_000, "127.0.0.1")
    assert len(endless.member_id) < 2_000
    await groups.stop()


async def test_a_topic_may_be_deleted_while_its_offsets_are_loaded() -> None:
    partition = PaperPartition()
    partition.batches = [batch_of(offset("g", 7))]
    groups = PaperBroker([partition]).groups()
    groups.start()
    assert not is_loaded(groups, "g")
    groups.topics_deleted(["t"])
    await until(lambda: is_loaded(groups, "g"))
    assert fetched(groups, "g") == {}
    await groups.stop()


async def test_deleting_the_offsets_topic_ends_all_groups() -> None:
    partition = PaperPartition()
    broker = PaperBroker([partition])
    groups = broker.groups()
    partition.batches = [batch_of(offset("g", 7))]
    groups.start()
    await until(lambda: is_loaded(groups, "g"))
    assert fetched(groups, "g") == {0: 7}
    groups.topics_deleted(["t"])
    assert fetched(groups, "g") == {}
    broker.catalog.topics.clear()
    groups.topics_deleted([GROUP_OFFSETS])
    assert code_of(lambda: groups.partition("g")) is ErrorCode.NOT_COORDINATOR
    await groups.stop()


async def test_the_clock_may_be_set_without_ending_a_session() -> None:
    broker = PaperBroker([PaperPartition()])
    groups = broker.groups()
    joined = await groups.join(join_request("g"), 3, "me", "127.0.0.1")
    broker.time_ms += 3_600_000
    assert groups.partition("g").shard.describe("g", 6).members[0].member_id == joined.member_id
    groups.partition("g").shard.tick(groups.now_ms)
    assert groups.partition("g").shard.describe("g", 6).members
    await groups.stop()


def test_group_clock() -> None:
    wall, steady, jumps = [1_000_000], [50.0], list[int]()
    clock = GroupClock(lambda: wall[0], lambda: steady[0], jumps.append)
    wall[0] += 10_000
    steady[0] += 10
    assert (clock.now_ms(), jumps) == (1_010_000, [])
    wall[0] -= 60_000
    assert (clock.now_ms(), jumps) == (950_000, [-60_000])
    wall[0] += 900
    assert (clock.now_ms(), jumps) == (950_900, [-60_000])
    wall[0] += 900
    assert (clock.now_ms(), jumps) == (951_800, [-60_000, 1_800])


async def test_find_coordinator_says_why_it_cannot() -> None:
    from logd.api.handlers import find_coordinator

    broker = PaperBroker([])
    broker.creation = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is full")
    serving = SimpleNamespace(groups=broker.groups(), catalog=broker.catalog, node_id=1)
    context: Any = SimpleNamespace(broker=serving, version=3, endpoint=SimpleNamespace(host="h", port=1))
    response = await find_coordinator.handle(FindCoordinatorRequest(key="g"), context)
    assert response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert response.error_message == "the disk is full"
