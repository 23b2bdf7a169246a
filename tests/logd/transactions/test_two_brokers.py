"""A transaction coordinated by one broker in a partition that another leads, by the real handlers and log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kafka_client.errors import ConnectionClosed, ErrorCode, KafkaError
from kafka_client.records import build_batch
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire.message import Message
from kafka_client.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from kafka_client.wire.messages.write_txn_markers import WriteTxnMarkersRequest
from logd.api.handlers import add_partitions_to_txn, write_txn_markers
from logd.broker.coordinators.peers import Cluster, Leadership
from logd.broker.coordinators.producer_id_blocks import BlocksAhead
from logd.broker.coordinators.producer_ids import ProducerIds
from logd.broker.partition.admission import NotYetAdmitted
from logd.broker.partition.partition import Partition
from logd.broker.topics.topic import TRANSACTION_STATE
from logd.broker.transactions.transactions import Transactions
from logd.config.broker import BrokerConfig
from logd.config.topic import TopicConfig
from logd.storage import LogDirectory
from logd.transactions import ProducerIdentity, TransactionState
from tests.logd.broker.replicated_partition import ReplicatedPartition
from tests.logd.transactions.test_leadership import Controller
from tests.support.waiting import until

COORDINATOR, LEADER = 1, 2
TOPIC_ID = bytes(range(16))
HOME, T0 = TopicPartition(TRANSACTION_STATE, 0), TopicPartition("t", 0)


class View:
    """A broker's view of the leaders."""

    def __init__(
        self, broker_id: int, leaders: dict[TopicPartition, int], epochs: dict[TopicPartition, int]
    ) -> None:
        self.broker_id = broker_id
        self.epochs = epochs
        self._leaders = leaders

    def leader_of(self, where: TopicPartition) -> int | None:
        return self._leaders.get(where)

    def leadership_of(self, where: TopicPartition) -> Leadership | None:
        leader = self._leaders.get(where)
        return None if leader is None else Leadership(leader, self.epochs.get(where, 0), TOPIC_ID)


class TwoBrokers:
    """`log` is the user's partition on LEADER. `is_cut`: requests between the two get no answer. `sent` are
    those with markers, for `deliver` to carry them out again.
    """

    def __init__(self, log: Partition) -> None:
        self.log = log
        self.state_log = ReplicatedPartition(TRANSACTION_STATE)
        self.leaders = {HOME: COORDINATOR, T0: LEADER}
        self.epochs: dict[TopicPartition, int] = {}
        self.is_cut = False
        self.sent: list[Message] = []
        self.blocks = BlocksAhead(Controller())
        self.catalogs: dict[int, Any] = {}
        self.coordinator = self.transactions(COORDINATOR, {HOME: self.state_log})
        self.leader = self.transactions(LEADER, {T0: log})
        log.guard = self.leader

    def transactions(self, broker_id: int, partitions: dict[TopicPartition, Any]) -> Transactions:
        def find(index: int) -> Any:
            return partitions[T0]

        user = SimpleNamespace(name="t", partitions=[partitions.get(T0)], partition=find)
        topics = {TRANSACTION_STATE: SimpleNamespace(partitions=[partitions.get(HOME)]), "t": user}
        catalog: Any = SimpleNamespace(topics=topics, partitions=partitions, find=topics.__getitem__)
        self.catalogs[broker_id] = catalog

        async def read_in(log: Any) -> None:
            pass

        made = Transactions(
            BrokerConfig.of({}),
            catalog,
            None,  # type: ignore[arg-type]
            ProducerIds.of_cluster(self.blocks),
            now_ms=lambda: 0,
            create_topic=None,  # type: ignore[arg-type]
            read_in=read_in,
            cluster=Cluster(View(broker_id, self.leaders, self.epochs), self),
        )
        made.only_elected()
        return made

    async def request(self, broker_id: int, message: Message) -> Message:
        if isinstance(message, WriteTxnMarkersRequest):
            self.sent.append(message)
        if self.is_cut:
            raise ConnectionClosed("cut")
        return await self.deliver(broker_id, message)

    async def deliver(self, broker_id: int, message: Message) -> Message:
        transactions = self.coordinator if broker_id == COORDINATOR else self.leader
        catalog = self.catalogs[broker_id]
        broker = SimpleNamespace(transactions=transactions, catalog=catalog, membership=None)
        context: Any = SimpleNamespace(broker=broker, version=5, is_broker=True)
        if isinstance(message, AddPartitionsToTxnRequest):
            return await add_partitions_to_txn.handle(message, context)
        return await write_txn_markers.handle(cast(Any, message), context)

    def elect(self, epoch: int) -> None:
        self.state_log.leader_epoch = epoch
        self.coordinator.elected(0, epoch)

    async def produce(self, identity: ProducerIdentity, sequence: int, *, implicit: bool) -> ErrorCode:
        """Append as the handler of Produce does, and return the error code that the producer gets."""
        batch = memoryview(
            build_batch(
                [(0, b"k", b"v", ())],
                producer_id=identity.producer_id,
                producer_epoch=identity.epoch,
                base_sequence=sequence,
                transactional=True,
            )
        )
        while True:
            try:
                self.log.produce(batch, 0, -1, transactional_id="x", implicit=implicit)
                return ErrorCode.NONE
            except NotYetAdmitted as not_yet:
                await not_yet.flushed
            except KafkaError as error:
                return error.code

    async def end(self, identity: ProducerIdentity, *, commit: bool, version: int) -> ProducerIdentity:
        return await self.coordinator.end("x", identity, commit=commit, client_version=version)

    @property
    def state(self) -> TransactionState:
        return self.coordinator.describe("x").state

    async def stop(self) -> None:
        for transactions in (self.coordinator, self.leader):
            await transactions.stop()
        await self.blocks.stop()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Partition]:
    config = TopicConfig()
    folder = LogDirectory.open(
        tmp_path / "data", node_id=1, cluster_id="c", config_for=lambda topic: config, now_ms=0
    )
    log = folder.create_log("t", 0, topic_id=TOPIC_ID, config=config, now_ms=0)
    flusher = cast(Any, SimpleNamespace(appended=lambda *_: None, touched=lambda *_: None))
    yield Partition(log, folder, TOPIC_ID, config, flusher)
    folder.close()


def run(log: Partition, story: Callable[[TwoBrokers], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        brokers = TwoBrokers(log)
        brokers.elect(1)
        await story(brokers)
        await brokers.stop()

    asyncio.run(asyncio.wait_for(whole(), 100))


def test_a_batch_brings_its_partition_into_the_transaction(log: Partition) -> None:
    async def story(brokers: TwoBrokers) -> None:
        identity = await brokers.coordinator.init_producer("x", 60_000, None)
        for number in range(3):
            assert await brokers.produce(identity, 0, implicit=True) is ErrorCode.NONE
            assert await brokers.produce(identity, 1, implicit=True) is ErrorCode.NONE
            assert brokers.coordinator.describe("x").partitions == (T0,)
            assert log.last_stable_offset == number * 3
            identity = await brokers.end(identity, commit=True, version=2)
            await until(lambda: brokers.state is TransactionState.COMPLETE_COMMIT)
            assert log.last_stable_offset == log.high_watermark == (number + 1) * 3

    run(log, story)


def test_a_batch_is_verified(log: Partition) -> None:
    """Batches are verified with transaction version 1: one after the abort does not begin a transaction that
    nobody ends.
    """

    async def story(brokers: TwoBrokers) -> None:
        identity = await brokers.coordinator.init_producer("x", 60_000, None)
        assert await brokers.produce(identity, 0, implicit=False) is ErrorCode.TRANSACTION_ABORTABLE
        await brokers.coordinator.add_partitions("x", identity, [T0])
        assert await brokers.produce(identity, 0, implicit=False) is ErrorCode.NONE
        await brokers.end(identity, commit=False, version=0)
        await until(lambda: brokers.state is TransactionState.COMPLETE_ABORT)
        assert await brokers.produce(identity, 1, implicit=False) is ErrorCode.TRANSACTION_ABORTABLE
        assert log.last_stable_offset == log.high_watermark == 2

    run(log, story)


def test_a_consent_that_the_abort_overtakes_is_none(log: Partition) -> None:
    """Admissions that an abort overtakes are void. The coordinator admits the batch, and the abort's marker
    arrives first.
    """

    async def story(brokers: TwoBrokers) -> None:
        identity = await brokers.coordinator.init_producer("x", 60_000, None)
        await brokers.coordinator.add_partitions("x", identity, [T0])
        with pytest.raises(NotYetAdmitted) as not_yet:
            brokers.leader.admit("x", *identity, *T0, implicit=False)
        await not_yet.value.flushed
        await brokers.end(identity, commit=False, version=0)
        await until(lambda: brokers.state is TransactionState.COMPLETE_ABORT)
        assert await brokers.produce(identity, 0, implicit=False) is ErrorCode.TRANSACTION_ABORTABLE
        assert not log.has_open_transaction(identity.producer_id)

    run(log, story)


def test_while_the_two_are_cut_off_producers_wait_and_markers_follow(log: Partition) -> None:
    async def story(brokers: TwoBrokers) -> None:
        identity = await brokers.coordinator.init_producer("x", 60_000, None)
        assert await brokers.produce(identity, 0, implicit=True) is ErrorCode.NONE
        brokers.is_cut = True
        after = await brokers.end(identity, commit=True, version=2)
        assert await brokers.produce(after, 0, implicit=True) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert brokers.state is TransactionState.PREPARE_COMMIT and log.last_stable_offset == 0
        brokers.is_cut = False
        await until(lambda: brokers.state is TransactionState.COMPLETE_COMMIT)
        assert log.last_stable_offset == log.high_watermark == 2
        assert await brokers.produce(after, 0, implicit=True) is ErrorCode.NONE

    run(log, story)


@pytest.mark.parametrize("leader_epoch", [0, 2], ids=["it was sent again", "its broker leads again"])
@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_that_comes_late_does_not_end_the_next_transaction(
    commit: bool, leader_epoch: int, log: Partition
) -> None:
    """Up to transaction version 1 both have the same epoch."""

    async def story(brokers: TwoBrokers) -> None:
        identity = await brokers.coordinator.init_producer("x", 60_000, None)
        await brokers.coordinator.add_partitions("x", identity, [T0])
        assert await brokers.produce(identity, 0, implicit=False) is ErrorCode.NONE
        brokers.is_cut = True
        await brokers.end(identity, commit=commit, version=0)
        await until(lambda: bool(brokers.sent))
        log.leader_epoch = brokers.epochs[T0] = leader_epoch
        brokers.is_cut = False
        done = TransactionState.COMPLETE_COMMIT if commit else TransactionState.COMPLETE_ABORT
        await until(lambda: brokers.state is done)
        await brokers.coordinator.add_partitions("x", identity, [T0])
        assert await brokers.produce(identity, 1, implicit=False) is ErrorCode.NONE
        end = log.log_end_offset
        await brokers.deliver(LEADER, brokers.sent[0])
        assert log.log_end_offset == end and log.has_open_transaction(identity.producer_id)
        await brokers.end(identity, commit=not commit, version=0)
        await until(lambda: not log.has_open_transaction(identity.producer_id))
        assert log.log_end_offset == end + 1

    run(log, story)


def test_a_coordinator_that_was_replaced_writes_no_marker_over_the_next_one_s(log: Partition) -> None:
    async def story(brokers: TwoBrokers) -> None:
        identity = await brokers.coordinator.init_producer("x", 60_000, None)
        await brokers.coordinator.add_partitions("x", identity, [T0])
        assert await brokers.produce(identity, 0, implicit=False) is ErrorCode.NONE
        log.append_marker(*identity, False, 5, 0)  # by a coordinator of epoch 5
        await brokers.coordinator.add_partitions("x", identity, [T0])
        end = log.log_end_offset
        await brokers.end(identity, commit=True, version=0)
        await until(lambda: brokers.state is TransactionState.COMPLETE_COMMIT)
        assert log.log_end_offset == end

    run(log, story)
