"""An exactly-once task of whole batches on a real broker: batches and offsets are committed together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from connect.api import BatchSourceTask, RawBatch
from connect.distributed.fencing import fence_producer
from connect.runtime.exactly_once_batch_task import ExactlyOnceBatchSourceTask
from connect.runtime.states import State
from kafka_client import BatchFetcher, TopicPartition
from kafka_client.records import Codec, build_batch
from tests.support.exactly_once_bench import until


class Batches(BatchSourceTask):
    """Gives `polls` polls of two batches, each of two numbers; `asks` is called with each poll."""

    topic = "t"

    def __init__(self, polls: int, asks: Callable[[Any, list[RawBatch]], None] = lambda t, b: None) -> None:
        self.may_poll = self.polls = polls
        self.asks = asks
        self.notes: list[tuple[int, bool]] = []

    def start(self, config: Mapping[str, str]) -> None:
        self.next = self.first = (self.context.offsets.offset({"s": 1}) or {"n": 0})["n"]

    def poll(self) -> list[RawBatch] | None:
        if self.next >= 4 * self.may_poll:
            if self.may_poll >= self.polls:
                self.context.finished()
            return None
        batches = [self.batch(self.next), self.batch(self.next + 2)]
        self.next += 4
        self.asks(self, batches)
        return batches

    def batch(self, n: int) -> RawBatch:
        records = [(1000 + i, None, b"%d" % i, ()) for i in (n, n + 1)]
        # Another producer's numbers, as a copy from a cluster has them.
        data = build_batch(records, codec=Codec.LZ4, producer_id=7, producer_epoch=1, base_sequence=5)
        return RawBatch(self.topic, 0, data, {"s": 1}, {"n": n + 2})

    def commit_batch(self, batch: RawBatch, offset: int | None) -> None:
        assert batch.source_offset is not None
        self.notes.append((batch.source_offset["n"], offset is not None))


@pytest.mark.parametrize("boundary", ["poll", "interval"])
async def test_batches_and_offsets_are_committed_at_each_poll_or_at_an_interval(bench, boundary):
    plugin = Batches(3)
    task = await bench.done(plugin, transaction_boundary=boundary, transaction_boundary_interval_ms="20")
    assert isinstance(task, ExactlyOnceBatchSourceTask)
    assert await bench.read() == list(range(12))
    assert await bench.offset() == b'{"n":12}'
    assert plugin.notes == [(n, True) for n in range(2, 13, 2)]
    assert (task.polled, task.acked) == (12, 12)
    again = Batches(4)
    await bench.done(again)
    assert again.first == 12
    assert await bench.read() == list(range(16))


async def test_batches_stay_compressed_and_bear_the_producers_numbers(bench):
    task = await bench.done(Batches(2))
    tp, headers = TopicPartition(bench.topic, 0), []
    async with BatchFetcher(bench.client, auto_offset_reset="earliest") as fetcher:
        fetcher.assign({tp: 0})
        while len([h for h in headers if not h.is_control]) < 4:
            for fetched in await fetcher.fetch(timeout_ms=500):
                headers += [header for header, _ in fetched.batches()]
    batches = [header for header in headers if not header.is_control]
    assert [header.codec for header in batches] == [Codec.LZ4] * 4
    assert all(header.is_transactional for header in batches)
    assert {header.producer_id for header in batches} == {task._transactions.identity.producer_id}


async def test_the_plugin_ends_transactions_after_batches_and_polls(bench):
    """The first batch commits, the second aborts, though its offset counts; the last poll never ends."""

    def asks(task: Batches, batches: list[RawBatch]) -> None:
        transactions = task.context.transactions
        assert transactions is not None
        match batches[0].source_offset:
            case {"n": 2}:
                transactions.commit_transaction(batches[0])
                transactions.abort_transaction(batches[1])
            case {"n": 6}:
                transactions.commit_transaction()

    plugin = Batches(3, asks)
    await bench.done(plugin, transaction_boundary="connector")
    assert await bench.read() == [0, 1, 4, 5, 6, 7]
    assert await bench.offset() == b'{"n":8}'
    assert plugin.notes == [(2, True), (4, False), (6, True), (8, True)]


async def test_the_batches_of_a_fenced_task_are_not_visible(bench):
    plugin = Batches(1 << 40)
    plugin.may_poll = 1
    task = bench.task(plugin, transaction_boundary="interval", transaction_boundary_interval_ms="600000")
    await until(lambda: task.acked == 4)
    await fence_producer(bench.client, bench.fencing.transactional_id(bench.topic, 0))
    plugin.may_poll = 2
    await until(lambda: task.status.state is State.FAILED)
    assert "another instance of the task has started" in task.status.trace
    assert await bench.read() == []
    assert await bench.offset() is None


async def test_batches_may_not_go_to_the_tasks_own_offset_topic(bench):
    plugin = Batches(1)
    task = bench.task(plugin)
    plugin.topic = "eos-offset"
    await until(lambda: task.status.state is State.FAILED)
    assert "eos-offset has the task's source offsets" in task.status.trace
