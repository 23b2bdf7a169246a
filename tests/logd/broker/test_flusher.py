"""Flushing in the background, with logs made of paper and a thread pool that is told when to work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from logd.broker.flusher import FLUSHES_AT_ONCE, Flusher
from logd.errors import ErrorCode, KafkaError


class PaperLog:
    """A log whose last offset is `end`; the flush is its number."""

    def __init__(self) -> None:
        self.end = 1
        self.flushed = 0
        self.failure: KafkaError | None = None

    @property
    def is_flushed(self) -> bool:
        return self.flushed == self.end

    def start_flush(self) -> PaperFlush | None:
        if self.failure is not None:
            raise self.failure
        return None if self.is_flushed else PaperFlush(self.end)

    def finish_flush(self, flush: PaperFlush) -> None:
        assert flush.was_run
        self.flushed = flush.end


class PaperFlush:
    def __init__(self, end: int) -> None:
        self.end = end
        self.was_run = False

    def run(self) -> None:
        self.was_run = True


class PaperPartition:
    def __init__(self, index: int) -> None:
        self.topic, self.index = "t", index
        self.log = PaperLog()
        self.is_offline = False


class Pool:
    """Jobs wait until they are let go."""

    def __init__(self) -> None:
        self.waiting = 0
        self.waiting_max = 0
        self._go = asyncio.Event()

    async def run(self, job: Callable[[], None]) -> None:
        self.waiting += 1
        self.waiting_max = max(self.waiting_max, self.waiting)
        await self._go.wait()
        self.waiting -= 1
        job()

    def let_go(self) -> None:
        self._go.set()


def unflushed(partition: Any) -> bool:
    return not partition.log.is_flushed


def flusher_of(count: int) -> tuple[Flusher, dict[tuple[str, int], Any], Pool]:
    partitions: dict[tuple[str, int], Any] = {("t", index): PaperPartition(index) for index in range(count)}
    pool = Pool()
    return Flusher(partitions, pool.run), partitions, pool


async def turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def test_a_few_logs_are_flushed_at_a_time_and_all_in_the_end() -> None:
    async def run() -> None:
        flusher, partitions, pool = flusher_of(20)
        partitions["t", 7].log.flushed = 1
        flushing = asyncio.create_task(flusher.flush(unflushed))
        await turns()
        assert pool.waiting == FLUSHES_AT_ONCE
        pool.let_go()
        assert await flushing == 19
        assert pool.waiting_max == FLUSHES_AT_ONCE
        assert not any(map(unflushed, partitions.values()))
        assert await flusher.flush(unflushed) == 0

    asyncio.run(run())


def test_a_log_is_never_flushed_twice_at_once() -> None:
    async def run() -> None:
        flusher, partitions, pool = flusher_of(1)
        flushing = asyncio.create_task(flusher.flush(unflushed))
        await turns()
        assert await flusher.flush(unflushed) == 0
        partitions["t", 0].log.end = 2
        pool.let_go()
        assert await flushing == 1
        assert partitions["t", 0].log.flushed == 1
        assert await flusher.flush(unflushed) == 1
        assert partitions["t", 0].log.flushed == 2

    asyncio.run(run())


def test_a_log_that_is_deleted_while_it_waits_for_its_turn_is_left_alone() -> None:
    async def run() -> None:
        flusher, partitions, pool = flusher_of(FLUSHES_AT_ONCE + 1)
        flushing = asyncio.create_task(flusher.flush(unflushed))
        await turns()
        deleted = partitions.pop(("t", FLUSHES_AT_ONCE))
        deleted.log.failure = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
        pool.let_go()
        assert await flushing == FLUSHES_AT_ONCE

    asyncio.run(run())


def test_what_fails_or_is_offline_keeps_nobody_from_being_flushed(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        flusher, partitions, pool = flusher_of(6)
        partitions["t", 0].log.failure = KafkaError(ErrorCode.CORRUPT_MESSAGE, "a damaged batch")
        partitions["t", 1].is_offline = True
        pool.let_go()
        assert await flusher.flush(unflushed) == 4

    asyncio.run(run())
    assert caplog.text.count("not flushed") == 1
    assert "a damaged batch" in caplog.text
