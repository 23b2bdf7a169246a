"""Flushes in the background and before acknowledgements, with fake logs and a thread pool under the tests'
control.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kafka_client.errors import ErrorCode, KafkaError
from logd.broker.background.flusher import FLUSHES_AT_ONCE, SYNCS_AT_ONCE, Flusher


class PaperLog:
    """A fake log whose end offset is `end`; a flush is the offset up to which it syncs."""

    def __init__(self) -> None:
        self.end = 1
        self.flushed = 0
        self.synced = 0
        self.started: list[int] = []
        self.failure: KafkaError | None = None

    @property
    def flusher(self) -> PaperLog:
        """The part of a log that the flusher uses, which is the fake log itself."""
        return self

    @property
    def log_end_offset(self) -> int:
        return self.end

    @property
    def is_flushed(self) -> bool:
        return self.flushed == self.end

    def start_flush(self) -> PaperFlush | None:
        if self.failure is not None:
            raise self.failure
        return None if self.is_flushed else PaperFlush(self, self.end)

    def start_sync(self) -> PaperFlush | None:
        if self.failure is not None:
            raise self.failure
        if self.synced == self.end:
            return None
        self.started.append(self.end)
        return PaperFlush(self, self.end, is_sync=True)

    def finish_flush(self, flush: PaperFlush) -> None:
        assert flush.was_run
        self.synced = flush.end
        if not flush.is_sync:
            self.flushed = flush.end


class PaperFlush:
    def __init__(self, log: PaperLog, end: int, *, is_sync: bool = False) -> None:
        self.log = log
        self.end = end
        self.is_sync = is_sync
        self.was_run = False

    def run(self) -> None:
        if self.log.failure is not None:
            raise self.log.failure
        self.was_run = True


class PaperPartition:
    def __init__(self, index: int) -> None:
        self.topic, self.index = "t", index
        self.log = PaperLog()
        self.is_offline = False
        self.flushes_ended = 0

    def flush_ended(self) -> None:
        self.flushes_ended += 1


class Pool:
    """A thread pool whose jobs wait for `release`."""

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

    def release(self) -> None:
        self._go.set()

    def hold(self) -> None:
        self._go.clear()


async def no_rest(seconds: float) -> None:
    """Return at once, in place of the pause between flushes."""


def flusher_of(
    count: int, bytes_max: int = 1_000, rest: Callable[[float], Awaitable[None]] = no_rest
) -> tuple[Flusher, list[Any], Pool]:
    partitions: list[Any] = [PaperPartition(index) for index in range(count)]
    pool = Pool()
    flusher = Flusher(pool.run, bytes_max, rest=rest)
    for partition in partitions:
        flusher.appended(partition, 1)
    return flusher, partitions, pool


async def turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


# In the background


async def test_a_few_logs_are_flushed_at_a_time_and_all_in_the_end() -> None:
    flusher, partitions, pool = flusher_of(20)
    partitions[7].log.flushed = 1
    flushing = asyncio.create_task(flusher.flush_all())
    await turns()
    assert pool.waiting == FLUSHES_AT_ONCE
    pool.release()
    assert await flushing == 19
    assert pool.waiting_max == FLUSHES_AT_ONCE
    assert all(partition.log.flusher.is_flushed for partition in partitions)
    assert await flusher.flush_all() == 0


async def test_a_log_is_never_flushed_twice_at_once_and_what_came_meanwhile_is_flushed_next() -> None:
    flusher, (partition,), pool = flusher_of(1)
    flushing = asyncio.create_task(flusher.flush_all())
    await turns()
    partition.log.end = 2
    flusher.appended(partition, 1)
    assert await flusher.flush_all() == 0
    pool.release()
    assert await flushing == 1
    assert partition.log.flushed == 1
    assert await flusher.flush_all() == 1
    assert partition.log.flushed == 2


async def test_what_is_idle_is_not_looked_at() -> None:
    flusher, partitions, pool = flusher_of(3)
    pool.release()
    assert await flusher.flush_all() == 3
    for partition in partitions:
        partition.log = None  # any look would be an error
    assert await flusher.flush_all() == 0
    flusher.sync_due(0)


async def test_so_many_bytes_do_not_wait_for_their_time() -> None:
    flusher, partitions, pool = flusher_of(2, bytes_max=100)
    full = asyncio.create_task(flusher.full())
    flusher.appended(partitions[0], 97)
    await turns()
    assert not full.done()
    flusher.appended(partitions[1], 1)
    await full
    pool.release()
    assert await flusher.flush_all() == 2
    full = asyncio.create_task(flusher.full())
    flusher.appended(partitions[0], 99)
    await turns()
    assert not full.done(), "counted anew"
    full.cancel()


async def test_a_rest_follows_each_flush_as_long_as_that_unless_much_is_waiting() -> None:
    rests: list[float] = []
    worked: list[float] = []

    async def rest(seconds: float) -> None:
        rests.append(seconds)

    async def work(job: Callable[[], None]) -> None:
        began = asyncio.get_running_loop().time()
        await asyncio.sleep(0.01)
        job()
        worked.append(asyncio.get_running_loop().time() - began)

    partitions: list[Any] = [PaperPartition(index) for index in range(6)]
    flusher = Flusher(work, 100, rest=rest)
    for partition in partitions:
        flusher.appended(partition, 1)
    assert await flusher.flush_all() == 6
    assert len(rests) == 6
    assert all(rested >= flushed for rested, flushed in zip(rests, worked, strict=True))
    rests.clear()
    for partition in partitions:
        partition.log.end = 2
        flusher.touched(partition)
    flushing = asyncio.create_task(flusher.flush_all())
    await turns()
    flusher.appended(partitions[0], 100)
    assert await flushing == 6
    assert not rests


async def test_a_log_that_is_deleted_while_it_waits_for_its_turn_is_left_alone() -> None:
    flusher, partitions, pool = flusher_of(FLUSHES_AT_ONCE + 1)
    flushing = asyncio.create_task(flusher.flush_all())
    await turns()
    (deleted,) = (partition for partition in partitions if partition in flusher._dirty)
    flusher.forget(deleted)
    deleted.log.failure = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
    pool.release()
    assert await flushing == FLUSHES_AT_ONCE


def test_what_fails_or_is_offline_keeps_nobody_from_being_flushed(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        flusher, partitions, pool = flusher_of(6)
        partitions[0].log.failure = KafkaError(ErrorCode.CORRUPT_MESSAGE, "a damaged batch")
        partitions[1].is_offline = True
        pool.release()
        assert await flusher.flush_all() == 4

    asyncio.run(run())
    assert caplog.text.count("not flushed") == 1
    assert "a damaged batch" in caplog.text


# Before an acknowledgement


async def test_all_that_comes_during_one_sync_shares_the_next() -> None:
    flusher, (partition,), pool = flusher_of(1)
    log = partition.log
    first = flusher.sync(partition)
    assert flusher.sync(partition) is first, "not begun yet: it covers this one too"
    await turns()
    assert log.started == [1]
    later = []
    for log.end in (2, 3, 4):
        later.append(flusher.sync(partition))
        await turns()
    assert len(set(map(id, later))) == 1
    assert log.started == [1], "one at a time"
    pool.release()
    await first
    await later[0]
    assert log.started == [1, 4] and log.synced == 4
    await turns()
    assert not flusher._syncing


async def test_who_waits_for_an_offset_waits_for_no_more_syncs_than_it_takes() -> None:
    flusher, (partition,), pool = flusher_of(1)
    first = flusher.sync(partition)
    await turns()
    assert flusher.synced(partition, 0) is first
    assert flusher.synced(partition, 1) is first, "nothing is owed behind what is under way"
    partition.log.end = 3
    second = flusher.sync(partition)
    assert flusher.synced(partition, 0) is first
    assert flusher.synced(partition, 1) is flusher.synced(partition, 2) is second
    pool.release()
    await second
    assert partition.log.started == [1, 3] and partition.flushes_ended == 2
    await turns()
    assert flusher.statistics()["syncing"] == 0


async def test_no_sync_begins_while_a_log_is_held_whatever_it_waited_for_before() -> None:
    """Syncs that waited for their turn do not run while their log is paused.

    One did run during the log's move to another folder.
    """
    flusher, partitions, pool = flusher_of(SYNCS_AT_ONCE + 1)
    waiting = [flusher.sync(partition) for partition in partitions]
    await turns()
    last = partitions[-1]
    last.log.flusher.is_flushing = False
    async with flusher.paused(last):
        pool.release()
        await asyncio.gather(*waiting[:-1])
        await turns()
        assert not last.log.started and not waiting[-1].done()
    await waiting[-1]
    assert last.log.started == [1]


async def test_who_waits_for_a_sync_that_fails_is_told_and_the_next_one_is_tried() -> None:
    flusher, (partition,), pool = flusher_of(1)
    first = flusher.sync(partition)
    await turns()
    second = flusher.sync(partition)
    partition.log.failure = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "gone")
    pool.release()
    for waiting in (first, second):
        with pytest.raises(KafkaError, match="gone"):
            await waiting
    assert partition.log.synced == 0


async def test_a_few_logs_are_synced_at_a_time_and_stopping_waits_for_them() -> None:
    flusher, partitions, pool = flusher_of(10)
    waiting = [flusher.sync(partition) for partition in partitions]
    await turns()
    assert pool.waiting == SYNCS_AT_ONCE
    stopping = asyncio.create_task(flusher.stop())
    await turns()
    assert not stopping.done()
    pool.release()
    await stopping
    assert all(future.done() for future in waiting)
    assert pool.waiting_max == SYNCS_AT_ONCE
