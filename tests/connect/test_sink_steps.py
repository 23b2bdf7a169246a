"""A sink task between the parts of what it has fetched: it stops, pauses and commits there.

One fetch may bring 64 MB in parts of a few records, and a slow target takes minutes for them: all of it was
put before anything else could happen, so a stop ended in the task being abandoned, nothing committed.
"""

import asyncio
import threading

import pytest

from connect.api import RetriableError
from connect.runtime.conversion import Conversion
from connect.runtime.states import State
from tests.connect.test_sink_task import A, B, Target, started

PARTS = 60


class Stepwise(Target):
    """Takes as many parts as it is let."""

    def __init__(self, allowed=0):
        self.allowed = asyncio.Semaphore(allowed)

    async def put(self, records):
        await self.allowed.acquire()
        super().put(records)


async def fetched_in_parts(harness, plugin, count=PARTS):
    task, consumer = await started(harness, plugin)
    consumer.per_fetch, consumer.parts = 1, PARTS
    consumer.write(A, *(b"%d" % n for n in range(count)))
    await consumer.assign(A)
    return task, consumer


def test_a_stop_takes_effect_behind_the_part_that_is_put(harness, fake_consumer):
    async def run():
        harness.worker["offset.flush.interval.ms"] = "60000"
        plugin = Stepwise(allowed=2)
        task, consumer = await fetched_in_parts(harness, plugin)
        await harness.until(lambda: task.delivered == 2)
        stopping = asyncio.create_task(task.stop())
        await asyncio.sleep(0)
        plugin.allowed.release()
        await stopping
        assert task.status.state is State.UNASSIGNED
        assert plugin.durable == {A: [0, 1, 2]}
        assert consumer.committed_offsets == {A: 3}

    asyncio.run(asyncio.wait_for(run(), 60))


async def test_a_pause_takes_effect_behind_the_part_that_is_put(harness, fake_consumer):
    plugin = Stepwise(allowed=2)
    task, consumer = await fetched_in_parts(harness, plugin)
    await harness.until(lambda: task.delivered == 2)
    task.pause()
    for _ in range(PARTS):
        plugin.allowed.release()
    await harness.in_state(task, State.PAUSED)
    assert task.delivered == 3
    task.resume()
    await harness.until(lambda: consumer.committed_offsets == {A: PARTS})
    assert plugin.durable == {A: list(range(PARTS))}
    await task.stop()


async def test_offsets_are_committed_between_the_parts(harness, fake_consumer):
    harness.worker["offset.flush.interval.ms"] = "60000"
    plugin = Stepwise(allowed=1)
    task, consumer = await fetched_in_parts(harness, plugin)
    await harness.until(lambda: task.delivered == 1)
    task.request_commit()
    plugin.allowed.release()
    await harness.until(lambda: consumer.committed_offsets)
    assert consumer.committed_offsets[A] < PARTS
    for _ in range(PARTS):
        plugin.allowed.release()
    await harness.until(lambda: task.delivered == PARTS)
    await task.stop()
    assert consumer.committed_offsets == {A: PARTS}
    assert plugin.durable == {A: list(range(PARTS))}


class Refusing(Target):
    """Takes A, and B only when told."""

    refusing = True

    def put(self, records):
        if self.refusing and records[0].partition == B.partition:
            raise RetriableError("busy")
        super().put(records)


@pytest.mark.parametrize("end", ["pause", "stop", "go on"])
async def test_a_refused_part_keeps_others_neither_from_the_commit_nor_from_a_pause(
    harness, fake_consumer, end
):
    """Committing and pausing go on during a retry, as in Kafka, whose task does both while it waits."""
    plugin = Refusing()
    task, consumer = await started(harness, plugin)
    consumer.write(A, b"1", b"2")
    consumer.write(B, b"3")
    await consumer.assign(A, B)
    await harness.until(lambda: consumer.committed_offsets == {A: 2})
    if end == "pause":
        task.pause()
        await harness.in_state(task, State.PAUSED)
        task.resume()
    if end != "stop":
        plugin.refusing = False
        await harness.until(lambda: consumer.committed_offsets == {A: 2, B: 1})
        assert plugin.durable == {A: [1, 2], B: [3]}
    await task.stop()
    assert task.status.state is State.UNASSIGNED


async def test_a_flush_that_fails_between_the_parts_skips_none_of_them(harness, fake_consumer):
    """Fetched parts after the offset that the task goes back to wait for their turn."""

    class Forgetful(Target):
        failures = 3

        def put(self, records):
            self.context.request_commit()
            super().put(records)

        def flush(self, offsets):
            if self.failures and any(self.unflushed.values()):
                self.failures -= 1
                self.unflushed = {}
                raise RetriableError("lost it")
            super().flush(offsets)

    plugin = Forgetful()
    task, consumer = await fetched_in_parts(harness, plugin, count=8)
    await harness.until(lambda: consumer.committed_offsets == {A: 8})
    assert plugin.durable == {A: list(range(8))}
    await task.stop()


def test_others_have_their_turn_while_what_was_fetched_is_converted(harness, fake_consumer, monkeypatch):
    """Conversion runs in the task's thread, in the same job as `put`; the loop goes on meanwhile."""
    count, original = 3500, Conversion.from_log
    converting, turned = threading.Event(), threading.Event()
    threads = set()

    def waiting(conversion, *arguments, **options):
        converting.set()
        assert turned.wait(60), "the event loop stands still while records are converted"
        threads.add(threading.current_thread())
        return original(conversion, *arguments, **options)

    monkeypatch.setattr(Conversion, "from_log", waiting)

    class Counting(Target):
        puts = ()

        def put(self, records):
            threads.add(threading.current_thread())
            self.puts += (len(records),)
            super().put(records)

    async def run():
        plugin = Counting()
        task, consumer = await started(harness, plugin)
        consumer.per_fetch, consumer.parts = count, 1
        consumer.write(A, *(b"%d" % n for n in range(count)))
        await consumer.assign(A)
        await harness.until(converting.is_set)
        turned.set()
        await harness.until(lambda: consumer.committed_offsets == {A: count})
        assert plugin.durable == {A: list(range(count))}
        assert plugin.puts == (count,)
        await task.stop()

    asyncio.run(run())
    (thread,) = threads
    assert thread is not threading.main_thread()
