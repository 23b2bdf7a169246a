"""Markers for partitions led elsewhere: gathered, bounded, tried again, sent where the leader is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_client.errors import ConnectionClosed, ErrorCode, KafkaError, RequestTimedOut
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire.message import Message
from kafka_client.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopic,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from logd.api.handlers import write_txn_markers
from logd.broker.coordinators.peer_queue import IN_FLIGHT_MAX
from logd.broker.coordinators.peers import NO_LEADER, Cluster, Leadership
from logd.broker.transactions import marker_queues
from logd.broker.transactions import partition as txn_partition
from logd.broker.transactions.marker_outcome import Outcome
from logd.broker.transactions.marker_queues import MarkerDelayed, MarkerQueues
from logd.broker.transactions.markers import Markers
from logd.broker.transactions.partition import TxnPartition
from logd.transactions import ProducerIdentity, TransactionSettings, TransactionState
from tests.logd.transactions.test_partition import PaperLog
from tests.support import depth
from tests.support.waiting import until

HERE = 1
TOPIC_ID = bytes(range(16))
PLACES = [TopicPartition("t", index) for index in range(6)]


class PaperCluster:
    """`leaders` by partition, HERE where none is named. `answer` gives a partition's code, or raises."""

    broker_id = HERE

    def __init__(self) -> None:
        self.leaders: dict[TopicPartition, int | None] = {}
        self.epochs: dict[TopicPartition, int] = {}
        self.requests: list[tuple[int, WriteTxnMarkersRequest]] = []
        self.written: dict[TopicPartition, list[tuple[int, bool, int]]] = {}
        self.answer: Callable[[int, TopicPartition], ErrorCode] = lambda broker_id, where: ErrorCode.NONE
        self.gate = asyncio.Event()
        self.gate.set()
        self.under_way: dict[int, int] = {}

    def leader_of(self, where: TopicPartition) -> int | None:
        return self.leaders.get(where, HERE)

    def leadership_of(self, where: TopicPartition) -> Leadership | None:
        leader = self.leaders.get(where, HERE)
        return None if leader is None else Leadership(leader, self.epochs.get(where, 0), TOPIC_ID)

    async def request(self, broker_id: int, message: Message) -> Message:
        assert isinstance(message, WriteTxnMarkersRequest)
        assert broker_id not in (HERE, NO_LEADER)
        self.requests.append((broker_id, message))
        self.under_way[broker_id] = self.under_way.get(broker_id, 0) + 1
        assert self.under_way[broker_id] <= IN_FLIGHT_MAX
        try:
            await self.gate.wait()
            return WriteTxnMarkersResponse(
                markers=[
                    WritableTxnMarkerResult(
                        producer_id=marker.producer_id,
                        topics=[
                            WritableTxnMarkerTopicResult(
                                name=topic.name,
                                partitions=[
                                    WritableTxnMarkerPartitionResult(
                                        partition_index=index,
                                        error_code=self.write(broker_id, topic.name, index, marker),
                                    )
                                    for index in topic.partition_indexes
                                ],
                            )
                            for topic in marker.topics
                        ],
                    )
                    for marker in reversed(message.markers)
                ]
            )
        finally:
            self.under_way[broker_id] -= 1

    def write(self, broker_id: int, topic: str, index: int, marker: Any) -> ErrorCode:
        where = TopicPartition(topic, index)
        code = self.answer(broker_id, where)
        if code is ErrorCode.NONE:
            outcome = marker.producer_epoch, marker.transaction_result, marker.coordinator_epoch
            self.written.setdefault(where, []).append(outcome)
        return code


class PaperTopics:
    """The partitions led here: each writes markers down."""

    def __init__(self) -> None:
        self.written: list[TopicPartition] = []

    def find(self, name: str) -> Any:
        return SimpleNamespace(partition=lambda index: self.partition(TopicPartition(name, index)))

    def partition(self, where: TopicPartition) -> Any:
        def append(*facts: object) -> Any:
            self.written.append(where)
            return SimpleNamespace(duplicate=False)

        return SimpleNamespace(
            append_sealed=append,
            flushed=lambda appended: None,
            check_leased=lambda: None,
            topic_id=TOPIC_ID,
            leader_epoch=3,
        )


class Shell:
    """A coordinator's partition with a transaction of `x`, in a cluster."""

    def __init__(self) -> None:
        self.cluster = PaperCluster()
        self.topics = PaperTopics()
        self.log = PaperLog()
        self.markers = Markers(
            self.topics,  # type: ignore[arg-type]
            None,  # type: ignore[arg-type]
            lambda: 0,
            Cluster(self.cluster, self.cluster),
        )
        self.partition = TxnPartition(
            0,
            self.log,  # type: ignore[arg-type]
            TransactionSettings(),
            self.markers,
            new_producer_id=iter(range(1000, 2000)).__next__,
            met_producer_id=lambda _: None,
            deposed=lambda _: None,
            now_ms=lambda: 0,
        )

    def commit(self, *places: TopicPartition, name: str = "x") -> None:
        identity = self.partition.init_producer(name, 60_000, None)
        self.partition.add_partitions(name, identity, places, client_version=2)
        self.partition.end(name, identity, commit=True, client_version=2)

    def state(self, name: str = "x") -> TransactionState:
        return self.partition._shard.describe(name).state

    async def complete(self, name: str = "x") -> None:
        await until(lambda: self.state(name) is TransactionState.COMPLETE_COMMIT)


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(txn_partition, "RETRY_FIRST_S", 0.001)
    monkeypatch.setattr(txn_partition, "RETRY_LAST_S", 0.001)


def run(story: Callable[[Shell], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        shell = Shell()
        await story(shell)
        await asyncio.gather(*shell.partition.close(), return_exceptions=True)
        await shell.markers.stop()

    asyncio.run(asyncio.wait_for(whole(), 100))


def test_a_request_for_each_leader_and_none_for_this_broker() -> None:
    async def story(shell: Shell) -> None:
        shell.cluster.leaders = {PLACES[1]: 2, PLACES[2]: 3, PLACES[3]: 2}
        shell.commit(*PLACES[:4])
        await shell.complete()
        assert shell.topics.written == [PLACES[0]]
        assert sorted(broker_id for broker_id, _ in shell.cluster.requests) == [2, 3]
        assert shell.cluster.written == {place: [(1, True, 3)] for place in PLACES[1:4]}

    run(story)


def test_transactions_that_end_together_share_a_request() -> None:
    async def story(shell: Shell) -> None:
        shell.cluster.leaders = dict.fromkeys(PLACES, 2)
        for name in ("x", "y"):
            shell.commit(PLACES[0], PLACES[1], name=name)
        await shell.complete("x")
        await shell.complete("y")
        ((_, request),) = shell.cluster.requests
        assert len(request.markers) == 2

    run(story)


def test_a_marker_says_which_term_topic_and_transaction_it_means() -> None:
    """And of two transactions in a row under one epoch the second has the higher number."""

    async def story(shell: Shell) -> None:
        shell.cluster.leaders = dict.fromkeys(PLACES[:2], 2)
        shell.cluster.epochs = {PLACES[0]: 4, PLACES[1]: 7}
        identity = shell.partition.init_producer("x", 60_000, None)
        numbers = []
        for _ in range(2):
            shell.partition.add_partitions("x", identity, PLACES[:2], client_version=0)
            shell.partition.end("x", identity, commit=True, client_version=0)
            await shell.complete()
            (marker,) = shell.cluster.requests[-1][1].markers
            (topic,) = marker.topics
            assert (topic.partition_indexes, topic.leader_epochs) == ([0, 1], [4, 7])
            assert topic.topic_id == TOPIC_ID
            numbers.append(marker.transaction_number)
        assert 0 <= numbers[0] < numbers[1]

    run(story)


def test_a_marker_is_taken_back_once_the_leader_s_term_is_over() -> None:
    """Markers are sent again in a new leader epoch, also if the same broker leads again: it refuses markers
    of the previous epoch.
    """

    async def story(shell: Shell) -> None:
        shell.cluster.leaders = {PLACES[0]: 2}
        shell.cluster.gate.clear()
        shell.commit(PLACES[0])
        await until(lambda: len(shell.cluster.requests) == 1)
        shell.cluster.epochs[PLACES[0]] = 2
        shell.markers.leaders_changed()
        await until(lambda: len(shell.cluster.requests) == 2)
        shell.cluster.gate.set()
        await shell.complete()
        epochs = [request.markers[0].topics[0].leader_epochs for _, request in shell.cluster.requests]
        assert epochs == [[0], [2]]

    run(story)


def test_what_led_here_alone_is_complete_in_the_next_turn() -> None:
    async def story(shell: Shell) -> None:
        shell.commit(*PLACES)
        await asyncio.sleep(0)
        assert shell.state() is TransactionState.COMPLETE_COMMIT
        assert shell.cluster.requests == []

    run(story)


@pytest.mark.parametrize("to", [3, HERE])
def test_a_marker_follows_the_leader(to: int) -> None:
    async def story(shell: Shell) -> None:
        shell.cluster.leaders = {PLACES[0]: 2, PLACES[1]: 2}

        def answer(broker_id: int, where: TopicPartition) -> ErrorCode:
            if (broker_id, where) == (2, PLACES[0]):
                shell.cluster.leaders[where] = to
                return ErrorCode.NOT_LEADER_OR_FOLLOWER
            return ErrorCode.NONE

        shell.cluster.answer = answer
        shell.commit(PLACES[0], PLACES[1])
        await shell.complete()
        assert len(shell.cluster.written[PLACES[1]]) == 1, "what is done is not sent again"
        if to == HERE:
            assert shell.topics.written == [PLACES[0]]
        else:
            assert [broker_id for broker_id, _ in shell.cluster.requests] == [2, 3]

    run(story)


def test_a_broker_that_never_answers_is_not_waited_for_once_another_leads() -> None:
    async def story(shell: Shell) -> None:
        shell.cluster.leaders = {PLACES[0]: 2, PLACES[1]: 2}
        shell.cluster.gate.clear()
        shell.commit(PLACES[0], PLACES[1])
        await until(lambda: len(shell.cluster.requests) == 1)
        shell.markers.leaders_changed()
        await asyncio.sleep(0.01)
        assert shell.topics.written == [], "they have not moved"
        shell.cluster.leaders.clear()
        shell.markers.leaders_changed()
        await shell.complete()
        assert shell.topics.written == PLACES[:2]
        assert len(shell.cluster.requests) == 1

    run(story)


@pytest.mark.parametrize(
    "failure",
    [ConnectionClosed("gone"), RequestTimedOut("late"), KafkaError(ErrorCode.BROKER_NOT_AVAILABLE)],
    ids=lambda failure: type(failure).__name__,
)
def test_a_broker_that_is_away_is_asked_again(failure: Exception) -> None:
    async def story(shell: Shell) -> None:
        shell.cluster.leaders = {PLACES[0]: 2}
        failures = [failure, failure]

        def answer(broker_id: int, where: TopicPartition) -> ErrorCode:
            if failures:
                raise failures.pop()
            return ErrorCode.NONE

        shell.cluster.answer = answer
        shell.commit(PLACES[0])
        await shell.complete()
        assert len(shell.cluster.requests) == 3

    run(story)


def test_a_topic_that_is_deleted_needs_no_marker() -> None:
    async def story(shell: Shell) -> None:
        shell.cluster.leaders = {PLACES[0]: None}
        shell.commit(PLACES[0])
        await shell.complete()
        assert shell.cluster.requests == [] and shell.topics.written == []

    run(story)


def test_a_broker_that_does_not_know_a_new_topic_yet_is_asked_again() -> None:
    async def story(shell: Shell) -> None:
        shell.cluster.leaders = {PLACES[0]: 2}
        codes = [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        shell.cluster.answer = lambda broker_id, where: codes.pop()
        shell.commit(PLACES[0])
        await shell.complete()
        assert len(shell.cluster.written[PLACES[0]]) == 1

    run(story)


@pytest.mark.parametrize("code", [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED])
def test_a_partition_that_somebody_newer_has_marked_is_done(code: ErrorCode) -> None:
    async def story(shell: Shell) -> None:
        shell.cluster.leaders = {PLACES[0]: 2}
        shell.cluster.answer = lambda broker_id, where: code
        shell.commit(PLACES[0])
        await shell.complete()
        assert len(shell.cluster.requests) == 1

    run(story)


def test_without_a_leader_it_waits_for_one() -> None:
    async def story(shell: Shell) -> None:
        shell.cluster.leaders = {PLACES[0]: NO_LEADER}
        shell.commit(PLACES[0])
        await asyncio.sleep(0.01)
        assert shell.state() is TransactionState.PREPARE_COMMIT
        shell.cluster.leaders[PLACES[0]] = 2
        await shell.complete()

    run(story)


def test_a_coordinator_that_resigns_sends_and_writes_nothing_any_more() -> None:
    async def story(shell: Shell) -> None:
        shell.cluster.leaders = dict.fromkeys(PLACES, 2)
        shell.cluster.gate.clear()
        for number in range(IN_FLIGHT_MAX + 2):
            shell.commit(PLACES[0], name=str(number))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        assert len(shell.cluster.requests) == IN_FLIGHT_MAX
        assert shell.markers.statistics()["markers_queued"] == 2
        stored = len(shell.log.records)
        ended = shell.partition.close()
        shell.cluster.gate.set()
        await asyncio.gather(*ended, return_exceptions=True)
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(shell.cluster.requests) == IN_FLIGHT_MAX, "what was queued is dropped"
        assert len(shell.log.records) == stored
        assert shell.markers.statistics()["markers_in_flight"] == 0

    run(story)


def test_a_queue_that_is_full_has_them_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marker_queues, "MARKERS_QUEUED_MAX", 2)
    monkeypatch.setattr(marker_queues, "MARKERS_PER_REQUEST", 1)

    async def story(shell: Shell) -> None:
        shell.cluster.leaders = dict.fromkeys(PLACES, 2)
        shell.commit(*PLACES)
        await shell.complete()
        assert all(len(request.markers) == 1 for _, request in shell.cluster.requests)
        assert set(shell.cluster.written) == set(PLACES)

    run(story)


async def test_a_queue_of_what_was_given_up_has_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marker_queues, "MARKERS_QUEUED_MAX", 1)
    queues = MarkerQueues(PaperCluster())
    outcome = Outcome(ProducerIdentity(1, 0), True, 0, 2)
    first = queues.send(Leadership(2, 0, TOPIC_ID), PLACES[0], outcome)
    with pytest.raises(MarkerDelayed, match="1 markers wait for broker 2"):
        queues.send(Leadership(2, 0, TOPIC_ID), PLACES[1], outcome)
    first.cancel()
    await queues.send(Leadership(2, 0, TOPIC_ID), PLACES[1], outcome)
    await queues.stop()


async def test_one_producer_has_one_outcome_in_a_request() -> None:
    """Requests carry one outcome of a producer at most: the response tells producers
    apart by their id alone.
    """
    cluster = PaperCluster()
    queues = MarkerQueues(cluster)
    sent: list[Awaitable[None]] = [
        queues.send(Leadership(2, 0, TOPIC_ID), PLACES[0], Outcome(ProducerIdentity(1, epoch), True, 0, 2))
        for epoch in (0, 1)
    ]
    await asyncio.gather(*sent)
    assert [len(request.markers) for _, request in cluster.requests] == [1, 1]
    await queues.stop()


def test_a_broker_refuses_markers_for_what_another_leads() -> None:
    async def story(shell: Shell) -> None:
        shell.cluster.leaders = {PLACES[1]: 2, PLACES[2]: NO_LEADER, PLACES[3]: None}
        topic = WritableTxnMarkerTopic(name="t", partition_indexes=[0, 1, 2, 3])
        request = WriteTxnMarkersRequest(markers=[WritableTxnMarker(producer_id=1, topics=[topic])])
        broker = SimpleNamespace(transactions=SimpleNamespace(markers=shell.markers), membership=None)
        answer = await write_txn_markers.handle(
            request, cast(Any, SimpleNamespace(broker=broker, is_broker=True))
        )
        codes = [result.error_code for result in answer.markers[0].topics[0].partitions]
        assert codes == [ErrorCode.NONE] + [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 3
        assert shell.topics.written == [PLACES[0]]

    run(story)


@pytest.mark.parametrize(
    ("epochs", "topic_id", "code"),
    [
        ([3], TOPIC_ID, ErrorCode.NONE),
        ([], bytes(16), ErrorCode.NONE),
        ([2], TOPIC_ID, ErrorCode.FENCED_LEADER_EPOCH),
        ([4], TOPIC_ID, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ([3], bytes(15) + b"x", ErrorCode.UNKNOWN_TOPIC_ID),
        ([3, 3], TOPIC_ID, ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_broker_refuses_markers_of_another_term(
    epochs: list[int], topic_id: bytes, code: ErrorCode
) -> None:
    async def story(shell: Shell) -> None:
        topic = WritableTxnMarkerTopic(
            name="t", partition_indexes=[0], leader_epochs=epochs, topic_id=topic_id
        )
        request = WriteTxnMarkersRequest(markers=[WritableTxnMarker(producer_id=1, topics=[topic])])
        broker = SimpleNamespace(transactions=SimpleNamespace(markers=shell.markers), membership=None)
        answer = await write_txn_markers.handle(
            request, cast(Any, SimpleNamespace(broker=broker, is_broker=True))
        )
        assert answer.markers[0].topics[0].partitions[0].error_code == code
        assert shell.topics.written == ([] if code else [PLACES[0]])

    run(story)


CODES = st.sampled_from(
    [
        ErrorCode.NONE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        None,
    ]
)


@settings(max_examples=depth.times(50), deadline=None)
@given(st.lists(CODES, max_size=30), st.lists(st.sampled_from([HERE, 2, 3, NO_LEADER]), max_size=30))
def test_whatever_happens_every_partition_gets_its_marker(
    codes: list[ErrorCode | None], moves: list[int]
) -> None:
    async def story(shell: Shell) -> None:
        shell.cluster.leaders = {place: 2 + number % 2 for number, place in enumerate(PLACES)}

        def answer(broker_id: int, where: TopicPartition) -> ErrorCode:
            if moves:
                shell.cluster.leaders[where] = moves.pop()
            code = codes.pop() if codes else ErrorCode.NONE
            if code is None:
                raise ConnectionClosed("gone")
            return code

        shell.cluster.answer = answer
        shell.commit(*PLACES)
        await asyncio.sleep(0.02)
        moves.clear()
        shell.cluster.leaders = dict.fromkeys(PLACES, 2)
        await shell.complete()
        assert set(shell.cluster.written) | set(shell.topics.written) == set(PLACES)

    run(story)
