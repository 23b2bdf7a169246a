"""The shell around one coordinator partition: markers that cannot be written, disks that are slow."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.topic_partition import TopicPartition
from logd.broker.transactions import partition as txn_partition
from logd.broker.transactions.marker_outcome import Outcome
from logd.broker.transactions.partition import MARKERS_PER_TURN, TxnPartition
from logd.transactions import ProducerIdentity, TransactionSettings, TransactionState
from tests.logd.transactions.listlog import ListLog
from tests.support.waiting import until

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class PaperLog(ListLog):
    """A log of which an append is flushed once `flushing` is done."""

    leader_epoch = 3
    last = None

    def __init__(self) -> None:
        super().__init__()
        self.flushing: asyncio.Future[None] | None = None

    def flushed(self) -> Awaitable[None] | None:
        return None if self.flushing is None or self.flushing.done() else self.flushing

    def is_committed(self) -> bool:
        return self.flushed() is None

    def on_deposed(self, deposed: Callable[[], None]) -> None:
        pass

    def close(self) -> None:
        pass

    @property
    def is_empty(self) -> bool:
        return not self.records


class PaperMarkers:
    """Writes markers down; those for `broken` partitions fail, those for `slow` ones take their time."""

    def __init__(self) -> None:
        self.written: list[tuple[TopicPartition, int, bool, int]] = []
        self.broken: set[TopicPartition] = set()
        self.slow: dict[TopicPartition, asyncio.Future[None]] = {}

    def write_where_needed(self, where: TopicPartition, outcome: Outcome) -> Awaitable[None] | None:
        if where in self.broken:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "broken")
        self.written.append((where, outcome.identity.epoch, outcome.commit, outcome.coordinator_epoch))
        return self.slow.get(where)

    @property
    def places(self) -> list[TopicPartition]:
        return [where for where, *_ in self.written]


class Shell:
    """A partition at work with a transaction of `a` in some partitions."""

    def __init__(self, log: PaperLog | None = None) -> None:
        self.log = log or PaperLog()
        self.markers = PaperMarkers()
        self.partition = self.opened()

    def opened(self) -> TxnPartition:
        ids = itertools.count(1000)
        return TxnPartition(
            0,
            self.log,  # type: ignore[arg-type]
            TransactionSettings(),
            self.markers,  # type: ignore[arg-type]
            new_producer_id=lambda: next(ids),
            met_producer_id=lambda _: None,
            deposed=lambda _: None,
            now_ms=lambda: 0,
        )

    def begin(self, *partitions: TopicPartition) -> ProducerIdentity:
        identity = self.partition.init_producer("x", 60_000, None)
        self.partition.add_partitions("x", identity, partitions, client_version=2)
        return identity

    def commit(self, identity: ProducerIdentity) -> ProducerIdentity:
        return self.partition.end("x", identity, commit=True, client_version=2)

    @property
    def state(self) -> TransactionState:
        return self.partition._shard.describe("x").state


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(txn_partition, "RETRY_FIRST_S", 0.001)
    monkeypatch.setattr(txn_partition, "RETRY_LAST_S", 0.001)


def run(story: Callable[[Shell], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        shell = Shell()
        await story(shell)
        await asyncio.gather(*shell.partition.close(), return_exceptions=True)

    asyncio.run(asyncio.wait_for(whole(), 100))


def test_a_few_markers_are_written_in_the_next_turn() -> None:
    """EndTxn's answer waited for all of them, while Kafka's goes out once the outcome is decided."""

    async def story(shell: Shell) -> None:
        after = shell.commit(shell.begin(T0, T1))
        assert after.epoch == 1
        assert shell.state is TransactionState.PREPARE_COMMIT
        assert shell.markers.written == []
        await asyncio.sleep(0)
        assert shell.markers.written == [(T0, 1, True, 3), (T1, 1, True, 3)]
        assert shell.state is TransactionState.COMPLETE_COMMIT

    run(story)


@pytest.mark.parametrize("ask", ["init", "add", "verify", "end", "describe", "list"])
def test_who_asks_for_the_id_in_the_same_turn_finds_it_complete(ask: str) -> None:
    """Requests for the id complete its transaction first, so none is refused for work that takes a moment."""

    async def story(shell: Shell) -> None:
        identity = shell.begin(T0, T1)
        after = shell.commit(identity)
        partition = shell.partition
        if ask == "init":
            assert partition.init_producer("x", 60_000, None).epoch == after.epoch + 1
        elif ask == "add":
            partition.add_partitions("x", after, [T0], client_version=2)
        elif ask == "verify":
            assert partition.verify_partitions("x", after, [T0]) == {T0: ErrorCode.TRANSACTION_ABORTABLE}
        elif ask == "end":
            assert shell.commit(identity) == after
        elif ask == "describe":
            assert partition.describe("x").state is TransactionState.COMPLETE_COMMIT
        else:
            assert [one.state for one in partition.listed()] == [TransactionState.COMPLETE_COMMIT]
        assert shell.markers.places == [T0, T1]
        await asyncio.sleep(0)
        assert shell.markers.places == [T0, T1], "once"

    run(story)


def test_a_mistake_behind_the_answer_does_not_leave_the_transaction_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Markers are written although a mistake interrupts the first attempt. No request awaits them any more
    that could report it.
    """
    write = PaperMarkers.write_where_needed
    mistakes = [RuntimeError("mistake")]

    def write_or_fail(markers: PaperMarkers, *arguments: Any, **facts: Any) -> Awaitable[None] | None:
        if mistakes:
            raise mistakes.pop()
        return write(markers, *arguments, **facts)

    monkeypatch.setattr(PaperMarkers, "write_where_needed", write_or_fail)

    async def story(shell: Shell) -> None:
        shell.commit(shell.begin(T0, T1))
        await until(lambda: shell.state is TransactionState.COMPLETE_COMMIT)
        assert shell.markers.places == [T0, T1]

    run(story)


def test_a_partition_that_is_closed_writes_nothing_any_more() -> None:
    async def story(shell: Shell) -> None:
        shell.commit(shell.begin(T0))
        shell.partition.close()
        await asyncio.sleep(0)
        assert shell.markers.places == [], "the next start finishes it"

    run(story)


def test_many_markers_give_others_their_turn() -> None:
    async def story(shell: Shell) -> None:
        partitions = [TopicPartition("t", index) for index in range(MARKERS_PER_TURN * 2 + 1)]
        shell.commit(shell.begin(*partitions))
        await asyncio.sleep(0)
        assert shell.markers.places == partitions[:MARKERS_PER_TURN]
        await until(lambda: shell.state is TransactionState.COMPLETE_COMMIT)
        assert shell.markers.places == partitions

    run(story)


def test_a_partition_that_is_offline_is_tried_again() -> None:
    async def story(shell: Shell) -> None:
        shell.markers.broken = {T0}
        identity = shell.begin(T0, T1)
        shell.commit(identity)
        await asyncio.sleep(0)
        assert shell.markers.places == [T1], "the others do not wait for it"
        assert shell.state is TransactionState.PREPARE_COMMIT
        with pytest.raises(KafkaError, match="CONCURRENT_TRANSACTIONS"):
            shell.partition.init_producer("x", 60_000, None)
        await asyncio.sleep(0.01)
        assert shell.partition._shard.describe("x").partitions == (T0,)
        shell.markers.broken = set()
        await until(lambda: shell.state is TransactionState.COMPLETE_COMMIT)
        assert shell.markers.places == [T1, T0]

    run(story)


def test_no_marker_precedes_its_decision_on_the_disk() -> None:
    """Markers wait until the decision is flushed (flush.messages). After a power loss a marker without its
    decision would be half a commit.
    """

    async def story(shell: Shell) -> None:
        identity = shell.begin(T0)
        flushing = shell.log.flushing = asyncio.get_running_loop().create_future()
        shell.commit(identity)
        waiting = asyncio.ensure_future(shell.partition.flushed())
        await asyncio.sleep(0.01)
        assert not waiting.done(), "EndTxn is not answered yet"
        assert shell.markers.written == []
        flushing.set_result(None)
        await waiting
        await until(lambda: shell.state is TransactionState.COMPLETE_COMMIT)

    run(story)


def test_a_transaction_is_complete_once_its_markers_are_on_the_disk() -> None:
    async def story(shell: Shell) -> None:
        shell.markers.slow[T0] = flushing = asyncio.get_running_loop().create_future()
        shell.commit(shell.begin(T0, T1))
        await asyncio.sleep(0.01)
        assert shell.markers.places == [T0, T1]
        assert shell.state is TransactionState.PREPARE_COMMIT
        flushing.set_result(None)
        await until(lambda: shell.state is TransactionState.COMPLETE_COMMIT)
        assert shell.markers.places == [T0, T1]

    run(story)


def test_a_marker_that_may_be_lost_is_written_again() -> None:
    async def story(shell: Shell) -> None:
        shell.markers.slow[T0] = flushing = asyncio.get_running_loop().create_future()
        shell.commit(shell.begin(T0))
        await asyncio.sleep(0)
        flushing.set_exception(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "fsync"))
        shell.markers.slow = {}
        await until(lambda: shell.state is TransactionState.COMPLETE_COMMIT)
        assert shell.markers.places == [T0, T0]

    run(story)


def test_a_completion_the_log_does_not_take_is_written_later() -> None:
    async def story(shell: Shell) -> None:
        identity = shell.begin(T0)
        shell.partition._shard.end("x", identity, commit=False, client_version=2, now_ms=0)
        shell.log.failure = ErrorCode.NOT_COORDINATOR
        with pytest.raises(KafkaError, match="CONCURRENT_TRANSACTIONS"):
            shell.partition.init_producer("x", 60_000, None)
        assert shell.state is TransactionState.PREPARE_ABORT
        await until(lambda: shell.state is TransactionState.COMPLETE_ABORT)
        assert shell.markers.places == [T0]

    run(story)


def test_what_was_decided_is_finished_after_a_start() -> None:
    async def story(shell: Shell) -> None:
        shell.markers.broken = {T0, T1}
        shell.commit(shell.begin(T0, T1))
        await asyncio.sleep(0)
        await asyncio.gather(*shell.partition.close(), return_exceptions=True)
        shell.markers.broken = set()
        shell.partition = shell.opened()
        assert not shell.partition.load_if_empty()
        await shell.partition.load()
        assert shell.partition.loaded
        await until(lambda: shell.state is TransactionState.COMPLETE_COMMIT)
        assert shell.markers.written == [(T0, 1, True, 3), (T1, 1, True, 3)]

    run(story)


def test_a_partition_without_records_needs_no_loading() -> None:
    async def story(shell: Shell) -> None:
        assert shell.partition.load_if_empty()
        shell.partition.close()
        assert not shell.partition.load_if_empty(), "it has been closed"

    run(story)
