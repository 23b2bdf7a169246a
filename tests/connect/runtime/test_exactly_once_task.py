"""An exactly-once source task on a real broker: where its transactions end, and what a fenced one does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from connect.api import SourceRecord, SourceTask
from connect.distributed.fencing import fence_producer
from connect.errors import ConnectError
from connect.runtime.states import State
from tests.support.exactly_once_bench import until


class Numbers(SourceTask):
    """Gives `polls` batches of three numbers, each when it may; `asks` is called with each batch."""

    def __init__(self, polls: int, asks: Callable[[Numbers, list[SourceRecord]], None] | None = None) -> None:
        self.may_poll = self.polls = polls
        self.asks = asks
        self.notes: list[tuple[int, bool]] = []

    def start(self, config: Mapping[str, str]) -> None:
        self.next = (self.context.offsets.offset({"s": 1}) or {"n": 0})["n"]
        self.first = self.next

    def poll(self) -> list[SourceRecord] | None:
        if self.next >= 3 * self.may_poll:
            if self.may_poll >= self.polls:
                self.context.finished()
            return None
        records = [
            SourceRecord(self.topic, n, source_partition={"s": 1}, source_offset={"n": n + 1})
            for n in range(self.next, self.next + 3)
        ]
        self.next += 3
        if self.asks is not None:
            self.asks(self, records)
        return records

    topic = "t"


class Noting(Numbers):
    def commit_record(self, record: SourceRecord, metadata: Any) -> None:
        self.notes.append((record.value, metadata is not None))


@pytest.mark.parametrize("boundary", ["poll", "interval"])
async def test_records_and_offsets_are_committed_at_each_poll_or_at_an_interval(bench, boundary):
    plugin = Noting(4)
    await bench.done(plugin, transaction_boundary=boundary, transaction_boundary_interval_ms="20")
    assert await bench.read() == list(range(12))
    assert await bench.offset() == b'{"n":12}'
    assert plugin.notes == [(n, True) for n in range(12)]
    again = Numbers(5)
    await bench.done(again)
    assert again.first == 12
    assert await bench.read() == list(range(15))


async def test_an_interval_ends_a_transaction_while_nothing_comes(bench):
    plugin = Numbers(2)
    plugin.may_poll = 1
    task = bench.task(plugin, transaction_boundary="interval", transaction_boundary_interval_ms="30")
    await until(lambda: bench.store.shared.get(b'["%s",{"s":1}]' % bench.topic.encode()) == b'{"n":3}')
    assert await bench.read() == [0, 1, 2]
    await task.stop()


async def test_the_plugin_ends_transactions_after_records_and_polls(bench):
    """0 and 1 commit; 2 to 4 abort, though their offsets count; 5 to 8 commit with the poll; 9 on never."""

    def asks(task: Numbers, records: list[SourceRecord]) -> None:
        transactions = task.context.transactions
        assert transactions is not None
        for record in records:
            if record.value == 1:
                transactions.commit_transaction(record)
            elif record.value == 4:
                transactions.abort_transaction(record)
            elif record.value == 8:
                transactions.commit_transaction()

    plugin = Noting(4, asks)
    plugin.may_poll = 4
    await bench.done(plugin, transaction_boundary="connector")
    assert await bench.read() == [0, 1, 5, 6, 7, 8]
    assert await bench.offset() == b'{"n":9}'
    assert plugin.notes == [(n, n not in (2, 3, 4)) for n in range(9)]


async def test_an_aborted_poll_is_not_read_again(bench):
    def asks(task: Numbers, records: list[SourceRecord]) -> None:
        assert task.context.transactions is not None
        if records[0].value == 3:
            task.context.transactions.abort_transaction()
        else:
            task.context.transactions.commit_transaction()

    await bench.done(Numbers(3, asks), transaction_boundary="connector")
    assert await bench.read() == [0, 1, 2, 6, 7, 8]
    assert await bench.read("read_uncommitted") == list(range(9))


async def test_a_plugin_that_wants_both_ends_fails(bench):
    def asks(task: Numbers, records: list[SourceRecord]) -> None:
        assert task.context.transactions is not None
        task.context.transactions.commit_transaction(records[0])
        task.context.transactions.abort_transaction(records[0])

    task = bench.task(Numbers(1, asks), transaction_boundary="connector")
    await until(lambda: task.status.state is State.FAILED)
    assert "requested both commit and abort of same transaction" in task.status.trace
    assert await bench.read() == []


async def test_a_fenced_task_fails_with_the_reason_and_its_transaction_is_not_visible(bench):
    plugin = Numbers(1 << 40)
    plugin.may_poll = 1
    task = bench.task(plugin, transaction_boundary="interval", transaction_boundary_interval_ms="600000")
    await until(lambda: task.acked == 3)
    await fence_producer(bench.client, bench.fencing.transactional_id(bench.topic, 0))
    plugin.may_poll = 2
    await until(lambda: task.status.state is State.FAILED)
    assert "another instance of the task has started" in task.status.trace
    assert await bench.read() == []
    assert await bench.offset() is None


async def test_a_task_that_is_not_ours_any_more_does_not_start(bench):
    bench.fencing.refusal = ConnectError("Cannot start source task")
    plugin = Numbers(1)
    task = bench.task(plugin)
    await until(lambda: task.status.state is State.FAILED)
    assert not hasattr(plugin, "next")
    assert await bench.read() == []


async def test_a_pause_and_a_stop_commit_what_is_whole(bench):
    plugin = Numbers(1 << 40)
    plugin.may_poll = 2
    task = bench.task(plugin, transaction_boundary="interval", transaction_boundary_interval_ms="600000")
    await until(lambda: task.acked == 6)
    task.pause()
    await until(lambda: task.status.state is State.PAUSED)
    assert await bench.read() == list(range(6))
    plugin.may_poll = 3
    task.resume()
    await until(lambda: task.acked == 9)
    await task.stop()
    assert await bench.read() == list(range(9))
    assert await bench.offset() == b'{"n":9}'


async def test_settings_that_exclude_transactions_are_ignored(bench, caplog):
    overrides = {"transactional.id": "mine", "enable.idempotence": "false", "acks": "1"}
    await bench.done(Numbers(1), **{f"producer.override.{k}": v for k, v in overrides.items()})
    assert await bench.read() == [0, 1, 2]
    assert "producer.override.transactional.id=mine is ignored" in caplog.text


async def test_a_task_may_not_write_to_its_own_offset_topic(bench):
    plugin = Numbers(1)
    task = bench.task(plugin)
    plugin.topic = "eos-offset"
    await until(lambda: task.status.state is State.FAILED)
    assert "eos-offset has the task's source offsets" in task.status.trace
