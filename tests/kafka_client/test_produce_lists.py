"""The lists that are kept by events agree with a scan of all queues after any steps."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kafka_client import BatchProducer, TopicPartition
from kafka_client.cluster.metadata import NO_NODE
from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.producer.accumulator import PartitionQueue
from kafka_client.producer.backlog import Backlog
from kafka_client.producer.batch import PendingBatch
from kafka_client.producer.delivery import Delivery
from kafka_client.producer.due import NEVER, DueQueues
from kafka_client.producer.gate import NO_TRANSACTION, TransactionGate
from kafka_client.producer.identity import Identity
from kafka_client.records import Codec, build_batch, read_header
from kafka_client.wire import ApiKey
from tests.kafka_client.fake_broker import ReceivedRequest
from tests.kafka_client.test_producer_faults import stage
from tests.support import depth
from tests.support.waiting import until

NODES = (1, 2)
LINGER = 3.0
IN_FLIGHT_MAX = 2
BATCH_SIZE = 200
RECORD = (0, None, b"v" * 50, ())
RAW = memoryview(build_batch([RECORD]))
TPS = st.sampled_from([TopicPartition("t", number) for number in range(4)])
ERRORS = st.sampled_from(
    [
        KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER),
        KafkaError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        KafkaError(ErrorCode.UNKNOWN_PRODUCER_ID),
    ]
)


class Sender:
    """A double of `ProduceNode`."""

    def __init__(self, node: int, backlog: Backlog) -> None:
        self.due = DueQueues(node, backlog, linger=LINGER, max_in_flight=IN_FLIGHT_MAX)
        backlog.watchers[node] = self

    def note(self, tp: TopicPartition) -> None:
        self.due.changed[tp] = None


class Queues(RuleBasedStateMachine):
    """A backlog and its brokers: a producer's steps in any order."""

    halts = False

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.now = 0.0
        self.gate = self.make_gate()
        self.backlog = Backlog(1 << 20, halts=self.halts, gate=self.gate)
        self.senders = {node: Sender(node, self.backlog) for node in NODES}

    def make_gate(self) -> TransactionGate | None:
        return None

    def teardown(self) -> None:
        self.loop.close()

    def queue(self, tp: TopicPartition) -> PartitionQueue:
        exists = tp in self.backlog.queues
        # The last epoch there is: the next one makes a new producer id necessary.
        queue = self.backlog.queue(tp, Identity(7, 32_767 if tp.partition == 0 else 0))
        if not exists and tp.partition < 3:
            queue.found_leader(NODES[tp.partition % 2])
        return queue

    def delivery(self) -> Delivery:
        future: asyncio.Future[int | None] = self.loop.create_future()
        future.add_done_callback(lambda done: done.exception())
        return Delivery(future)

    # --- filling ---

    @rule(tp=TPS, count=st.integers(1, 3))
    def send(self, tp: TopicPartition, count: int) -> None:
        queue = self.queue(tp)
        for _ in range(count if queue.halted is None else 0):
            batch = queue.open_batch(self.now, BATCH_SIZE, 60)
            queue.put(batch, [RECORD], 60, self.delivery())

    @rule(tp=TPS)
    def send_batch(self, tp: TopicPartition) -> None:
        queue = self.queue(tp)
        if queue.halted is None:
            queue.put_raw(read_header(RAW), RAW, self.now, self.delivery())

    @rule()
    def seal(self) -> None:
        self.backlog.seal()
        assert not any(queue.is_filling for queue in self.backlog.queues.values())

    # --- sending ---

    @rule(seconds=st.sampled_from([0.5, 1, LINGER]))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds

    @rule(tp=TPS, node=st.sampled_from(NODES))
    def find_leader(self, tp: TopicPartition, node: int) -> None:
        self.queue(tp).found_leader(node)

    @rule(tp=TPS)
    def lose_leader(self, tp: TopicPartition) -> None:
        self.queue(tp).lose_leader()

    @rule(tp=TPS)
    def back_off(self, tp: TopicPartition) -> None:
        self.queue(tp).back_off(self.now + 2)

    @rule(node=st.sampled_from(NODES), most=st.integers(1, 4))
    def take(self, node: int, most: int) -> None:
        due = self.senders[node].due
        due.update(self.now)
        served = []
        while len(served) < most and (queue := due.first()) is not None:
            due.served(queue)
            served.append(queue)
            queue.take(Codec.NONE, None)
        assert len(served) == len(set(served)), "one batch of a partition to a request"

    # --- answers ---

    def under_way(self) -> list[tuple[PartitionQueue, PendingBatch]]:
        return [(queue, batch) for queue in self.backlog.queues.values() for batch in queue.in_flight]

    @precondition(under_way)
    @rule(data=st.data())
    def acked(self, data: Any) -> None:
        queue, batch = data.draw(st.sampled_from(self.under_way()))
        queue.acked(batch, 0)

    @precondition(under_way)
    @rule(data=st.data(), error=ERRORS)
    def retry(self, data: Any, error: KafkaError) -> None:
        queue, batch = data.draw(st.sampled_from(self.under_way()))
        queue.back_off(self.now + 1)
        queue.retry(batch, error)
        self.backlog.drop_halted(queue)

    @precondition(under_way)
    @rule(data=st.data())
    def give_up(self, data: Any) -> None:
        queue, batch = data.draw(st.sampled_from(self.under_way()))
        queue.give_up(batch, KafkaError(ErrorCode.INVALID_RECORD))
        self.backlog.drop_halted(queue)

    @precondition(under_way)
    @rule(data=st.data())
    def split(self, data: Any) -> None:
        queue, batch = data.draw(st.sampled_from(self.under_way()))
        if batch.raw is None and batch.count > 1 and not batch.done:
            queue.split(batch)

    @rule(tp=TPS, age=st.sampled_from([0, 2]))
    def expire(self, tp: TopicPartition, age: float) -> None:
        error = KafkaError(ErrorCode.REQUEST_TIMED_OUT)
        self.backlog.drop(self.queue(tp), error, lambda batch: batch.created_at <= self.now - age)

    @rule(tp=TPS)
    def continue_at(self, tp: TopicPartition) -> None:
        queue = self.queue(tp)
        if queue.idle and self.gate is None:
            queue.continue_at(Identity(7, 32_767), 5)

    @rule(tp=TPS)
    def halt(self, tp: TopicPartition) -> None:
        queue = self.queue(tp)
        queue.halt(KafkaError(ErrorCode.INVALID_RECORD))
        self.lists_are_right()
        self.backlog.drop_halted(queue)

    @rule()
    def renew(self) -> None:
        for queue in list(self.backlog.lookups.values()):
            if queue.identity is None:
                queue.renew(Identity(8, 0))

    # --- what a look through all of them finds ---

    @invariant()
    def lists_are_right(self) -> None:
        every = self.backlog.queues
        busy = {tp for tp, queue in every.items() if queue.batches()}
        assert set(self.backlog.busy) == busy
        assert set(self.backlog.filling) == {
            tp for tp, queue in every.items() if queue.waiting and not queue.waiting[-1].sealed
        }
        unresolved = {tp for tp in busy if every[tp].node == NO_NODE or every[tp].identity is None}
        assert set(self.backlog.lookups) == unresolved
        assert self.backlog.lookup_wanted.is_set() or not unresolved, "nobody was told"
        for node, sender in self.senders.items():
            due = sender.due
            due.update(self.now)
            times = {tp: q.due_at(LINGER, IN_FLIGHT_MAX) for tp, q in every.items() if q.node == node}
            assert set(due.ready) == {tp for tp, at in times.items() if at <= self.now}
            assert all(queue is every[tp] for tp, queue in due.ready.items())
            later = min((at for at in times.values() if self.now < at < NEVER), default=None)
            look_at = due.due_at()
            assert later is None or (look_at is not None and look_at <= later)
            assert look_at is None or look_at > self.now


class HaltingQueues(Queues):
    """Queues that halt on failure."""

    halts = True


class GatedQueues(Queues):
    """Queues whose batches belong to transactions."""

    def make_gate(self) -> TransactionGate:
        gate = TransactionGate("id", lambda transaction, error: None)
        gate.identity, gate.filling = Identity(7, 0), 1
        gate.open(1)
        return gate

    @rule(implicit=st.booleans())
    def open_gate(self, implicit: bool) -> None:
        assert self.gate is not None
        busy = [batch.transaction for queue in self.backlog.queues.values() for batch in queue.batches()]
        self.gate.implicit = implicit
        self.gate.open(min(busy, default=self.gate.filling))

    @rule()
    def fill_next(self) -> None:
        assert self.gate is not None
        self.backlog.seal()
        self.gate.filling += 1

    @rule()
    def shut_gate(self) -> None:
        assert self.gate is not None
        self.gate.shut()
        assert self.gate.sending == NO_TRANSACTION

    @rule(tp=TPS)
    def add_partition(self, tp: TopicPartition) -> None:
        assert self.gate is not None
        self.gate.add({tp})

    @rule()
    def abandon(self) -> None:
        assert self.gate is not None
        self.backlog.abandon_from(self.gate.filling, KafkaError(ErrorCode.TRANSACTION_ABORTABLE))


_SETTINGS = settings(max_examples=depth.times(150), stateful_step_count=50, database=None)
for _machine in (Queues, HaltingQueues, GatedQueues):
    _machine.TestCase.settings = _SETTINGS
TestQueues = Queues.TestCase
TestHaltingQueues = HaltingQueues.TestCase
TestGatedQueues = GatedQueues.TestCase


def accept(request: ReceivedRequest) -> Any:
    ((_, batches),) = request.message.topics
    return request.produced(*((partition, 0, 0) for partition, _ in batches))


@depth.deep
async def test_a_turn_touches_only_queues_with_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Senders, `flush` and waits for memory once scanned all queues each time."""
    partitions, active = 10_000, range(0, 5_000, 100)
    touched: set[TopicPartition] = set()

    def note(queue: PartitionQueue, name: str) -> Any:
        touched.add(object.__getattribute__(queue, "tp"))
        return object.__getattribute__(queue, name)

    async with (
        stage() as on,
        BatchProducer(on.client, linger_ms=1, delivery_timeout_ms=200_000) as producer,
    ):
        on.broker.topics["t"] = dict.fromkeys(range(partitions), 1)
        on.broker.on(ApiKey.PRODUCE, accept)
        for partition in range(partitions):
            await producer.send("t", partition, [RECORD])
        await producer.flush()
        monkeypatch.setattr(PartitionQueue, "__getattribute__", note, raising=False)
        requests = producer.statistics()["requests_sent"]
        for _ in range(3):
            for partition in active:
                await producer.send("t", partition, [RECORD])
            await producer.flush()
        assert producer.statistics()["requests_sent"] >= requests + 3
        assert touched == {TopicPartition("t", partition) for partition in active}


async def test_a_full_request_leaves_nobody_out_twice() -> None:
    """Batches that do not fit into a request are the first ones of the next."""
    served: list[list[int]] = []

    def note(request: ReceivedRequest) -> Any:
        ((_, batches),) = request.message.topics
        served.append([partition for partition, _ in batches])
        return accept(request)

    async with (
        stage() as on,
        BatchProducer(on.client, linger_ms=60_000, max_request_size=600, max_in_flight=1) as producer,
    ):
        on.broker.topics["t"] = dict.fromkeys(range(6), 1)
        on.broker.on(ApiKey.PRODUCE, note)
        for _ in range(4):
            for partition in range(6):
                await producer.send("t", partition, [(0, None, b"v" * 400, ())])
        await producer.flush()
        await until(lambda: sum(map(len, served)) >= 24)
        assert all(len(request) == 1 for request in served)
        order = [partition for request in served for partition in request]
        for at in range(0, 24, 6):
            assert sorted(order[at : at + 6]) == list(range(6))
