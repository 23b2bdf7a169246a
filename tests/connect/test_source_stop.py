"""`stop` of a source task, which exists to break off a `poll` that blocks."""

import asyncio
import queue
import threading

import pytest

from connect.api import SourceRecord, SourceTask, source
from connect.runtime.source_task import WorkerSourceTask
from connect.runtime.states import State

KEY = b'["c",{"s":1}]'


class Listening(SourceTask):
    """Waits for messages without end; its `stop` says that no more will come."""

    interrupted: list | None = None

    def __init__(self):
        self.messages = queue.SimpleQueue()
        self.waiting = threading.Event()
        self.stops = []
        self.polls = 0

    def start(self, config):
        self.thread = threading.current_thread()

    def poll(self):
        self.polls += 1
        self.waiting.set()
        message = self.messages.get()
        if message is None:
            if self.interrupted is None:
                raise ConnectionResetError("closed while reading")
            return self.interrupted
        return [SourceRecord("t", message, source_partition={"s": 1}, source_offset={"n": message})]

    def stop(self):
        self.stops.append(threading.current_thread())
        self.messages.put(None)


async def running(harness, plugin):
    task = WorkerSourceTask(harness.setting(), plugin, harness.store)
    task.launch()
    await harness.in_state(task, State.RUNNING)
    return task


async def test_a_poll_that_blocks_is_broken_off_by_stop(harness, fake_producer):
    """`stop` waited in the plugin's thread for the very `poll` it was to end: the task was abandoned."""
    plugin = Listening()
    task = await running(harness, plugin)
    plugin.messages.put(1)
    await harness.until(lambda: task.acked == 1 and plugin.polls == 2)
    await task.stop()
    assert task.status.state is State.UNASSIGNED
    assert harness.store.offsets == {KEY: b'{"n":1}'}
    (thread,) = plugin.stops
    assert thread is not plugin.thread


async def test_what_a_broken_off_poll_returns_is_sent_and_committed(harness, fake_producer):
    """Stopping sends and commits the last batch, as in Kafka; a source without offsets would lose it."""
    plugin = Listening()
    plugin.interrupted = [SourceRecord("t", 7, source_partition={"s": 1}, source_offset={"n": 7})]
    task = await running(harness, plugin)
    await harness.until(plugin.waiting.is_set)
    await task.stop()
    assert task.status.state is State.UNASSIGNED
    assert harness.client.producers[0].values == [b"7"]
    assert (task.polled, task.acked) == (1, 1)
    assert harness.store.offsets == {KEY: b'{"n":7}'}


async def test_a_failed_task_has_its_poll_broken_off_too(harness, fake_producer):
    plugin = Listening()
    task = await running(harness, plugin)
    await harness.until(plugin.waiting.is_set)
    task._fail(ZeroDivisionError("elsewhere"))
    await harness.in_state(task, State.FAILED)
    assert len(plugin.stops) == 1
    assert "elsewhere" in task.status.trace


def test_a_poll_that_returns_soon_is_waited_for(harness, fake_producer, monkeypatch):
    """Most plugins never meet a `stop` beside another call."""
    monkeypatch.setattr("connect.runtime.source_task._MOMENT_SECONDS", 30.0)  # a moment, on a busy machine
    harness.worker["task.shutdown.graceful.timeout.ms"] = "60000"

    class Prompt(Listening):
        def poll(self):
            super().poll()
            return [SourceRecord("t", 1)]

    async def run():
        plugin = Prompt()
        task = await running(harness, plugin)
        await harness.until(plugin.waiting.is_set)
        stopping = asyncio.create_task(task.stop())
        await harness.until(task._ending.is_set)
        plugin.messages.put(1)
        await stopping
        assert plugin.stops == [plugin.thread]

    asyncio.run(run())


def test_a_poll_that_no_stop_ends_is_given_up_with_offsets_committed(harness, fake_producer):
    blocked, released = threading.Event(), threading.Event()

    class Deaf(Listening):
        def stop(self):
            self.stops.append(threading.current_thread())

        def poll(self):
            if self.messages.empty():
                blocked.set()
                released.wait()
            return super().poll()

    async def run():
        harness.worker |= {"task.shutdown.graceful.timeout.ms": "50", "offset.flush.interval.ms": "60000"}
        plugin = Deaf()
        plugin.messages.put(1)
        task = await running(harness, plugin)
        await harness.until(blocked.is_set)
        await task.stop()
        assert harness.store.offsets == {KEY: b'{"n":1}'}
        assert len(plugin.stops) == 1

    try:
        asyncio.run(asyncio.wait_for(run(), 60))
    finally:
        released.set()


async def test_an_async_poll_is_cancelled_and_waited_for_before_stop(harness, fake_producer):
    """Calling `stop` waits for the `finally` of the cancelled poll.

    Once both ran at the same time, and an async generator could not be closed.
    """
    events = []

    @source(name="slow")
    async def slow(config, state):
        try:
            yield None
            events.append("waiting")
            await asyncio.Event().wait()
        finally:
            for _ in range(10):
                await asyncio.sleep(0)
            events.append("over")

    task = await running(harness, slow.task_class())
    await harness.until(lambda: events == ["waiting"])
    stop = task._task.stop

    async def stopped():
        events.append("stop")
        await stop()

    task._task.stop = stopped
    await task.stop()
    assert events == ["waiting", "over", "stop"]


def test_a_generator_that_waits_is_told_to_stop(harness, fake_producer):
    """Plain generators, which cannot be closed while they run, may take an event that says when to return."""
    waiting, closed = threading.Event(), threading.Event()

    @source(name="listening", batch_size=10)
    def listening(config, state, stopping):
        try:
            state["n"] = 1
            yield SourceRecord("t", 1)
            waiting.set()
            while not stopping.wait(30):
                pass
        finally:
            closed.set()

    async def run():
        task = await running(harness, listening.task_class())
        await harness.until(waiting.is_set)
        await task.stop()
        assert task.status.state is State.UNASSIGNED
        assert closed.is_set()
        assert harness.client.producers[0].values == [b"1"]
        assert not task.is_done
        assert list(harness.store.offsets.values()) == [b'{"n":1}']

    asyncio.run(asyncio.wait_for(run(), 60))


def test_a_generator_that_waits_by_itself_is_closed_once_it_yields(harness, fake_producer):
    waiting, more, closed = threading.Event(), threading.Event(), threading.Event()

    @source(name="patient")
    def patient(config, state):
        try:
            while True:
                waiting.set()
                more.wait()
                yield None
        finally:
            closed.set()

    async def run():
        task = await running(harness, patient.task_class())
        await harness.until(waiting.is_set)
        stopping = asyncio.create_task(task.stop())
        await harness.until(task._task._stopping.is_set)  # `stop` waits for the generator now
        more.set()
        await stopping
        assert closed.is_set()
        assert task.status.state is State.UNASSIGNED

    asyncio.run(asyncio.wait_for(run(), 60))


def test_an_async_generator_is_offered_no_event():
    async def cancelled(config, state, stopping):
        yield None

    with pytest.raises(TypeError, match="is cancelled"):
        source(name="cancelled")(cancelled)
