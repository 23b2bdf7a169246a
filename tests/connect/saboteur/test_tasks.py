"""Tasks whose plugins raise, hang or return nonsense: each fails with its reason, and ends when stopped."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from connect.api import SinkRecord, SourceRecord
from connect.runtime.sink_task import WorkerSinkTask
from connect.runtime.source_task import WorkerSourceTask
from connect.runtime.states import State
from kafka_client import TopicPartition
from tests.connect.saboteur.plugins import (
    RAISED,
    SINK_METHODS,
    SOURCE_METHODS,
    Numbers,
    Taker,
    raising,
    sabotaged,
)

TP = TopicPartition("t", 0)


def source_task(harness, plugin, **config: str) -> WorkerSourceTask:
    return WorkerSourceTask(harness.setting(**config), plugin, harness.store)


def sink_task(harness, plugin, **config: str) -> WorkerSinkTask:
    return WorkerSinkTask(harness.setting(topics="t", **config), plugin)


async def feed(harness) -> Any:
    """Give a sink's consumer a partition with records, and return the consumer."""
    await harness.until(lambda: harness.client.consumers)
    (consumer,) = harness.client.consumers
    await harness.until(lambda: hasattr(consumer, "on_assigned"))
    consumer.write(TP, b"1", b"2")
    await consumer.assign(TP)
    return consumer


@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
@pytest.mark.parametrize("kind", RAISED)
@pytest.mark.parametrize("method", SOURCE_METHODS)
async def test_a_source_that_raises(harness, fake_producer, method: str, kind: str, is_async: bool):
    plugin = sabotaged(Numbers, method, raising(kind), is_async=is_async)
    task = source_task(harness, plugin)
    task.launch()
    if method == "stop":
        await harness.in_state(task, State.RUNNING)
        await task.stop()
        assert plugin.harmed.is_set()
        assert task.status.state is State.UNASSIGNED
        return
    await harness.in_state(task, State.FAILED)
    assert "sabotage" in task.status.trace
    await task.stop()


@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
@pytest.mark.parametrize("kind", RAISED)
@pytest.mark.parametrize("method", SINK_METHODS)
async def test_a_sink_that_raises(harness, fake_consumer, method: str, kind: str, is_async: bool):
    plugin = sabotaged(Taker, method, raising(kind), is_async=is_async)
    task = sink_task(harness, plugin)
    task.launch()
    if method != "start":
        await harness.in_state(task, State.RUNNING)
        feeding = asyncio.ensure_future(feed(harness))
        await asyncio.wait({feeding})
    if method == "open":
        # The consumer gets the error, and raises it in the task's fetch.
        assert "sabotage" in repr(feeding.exception()) or kind == "StopIteration"
        await task.stop()
        return
    if method in ("stop", "close"):
        await task.stop()
        assert plugin.harmed.is_set()
        assert task.status.state in (State.UNASSIGNED, State.FAILED)
        return
    await harness.in_state(task, State.FAILED)
    assert "sabotage" in task.status.trace
    await task.stop()


@pytest.fixture
def released() -> Iterator[threading.Event]:
    """Yield an event that ends the hanging calls with the test."""
    event = threading.Event()
    yield event
    event.set()


@pytest.mark.parametrize("method", SOURCE_METHODS)
async def test_a_source_that_hangs_is_abandoned(harness, fake_producer, released, method: str):
    harness.worker |= {"task.shutdown.graceful.timeout.ms": "50", "offset.flush.timeout.ms": "50"}
    plugin = sabotaged(Numbers, method, released.wait)
    task = source_task(harness, plugin)
    task.launch()
    if method == "stop":
        await harness.in_state(task, State.RUNNING)
    else:
        await harness.until(plugin.harmed.is_set)
    await task.stop()
    assert task.status.state in (State.UNASSIGNED, State.FAILED)
    if task.status.state is State.FAILED:
        assert "did not stop" in task.status.trace


@pytest.mark.parametrize("method", SINK_METHODS)
async def test_a_sink_that_hangs_is_abandoned(harness, fake_consumer, released, method: str):
    # The time for a flush of the worker's own is not the plugin's.
    harness.worker |= {"task.shutdown.graceful.timeout.ms": "50", "offset.flush.timeout.ms": "3600000"}
    plugin = sabotaged(Taker, method, released.wait)
    task = sink_task(harness, plugin)
    task.launch()
    if method != "start":
        await harness.in_state(task, State.RUNNING)
        feeding = asyncio.ensure_future(feed(harness))
    if method not in ("stop", "close"):
        await harness.until(plugin.harmed.is_set)
    await task.stop()
    if method != "start":
        feeding.cancel()
    assert task.status.state in (State.UNASSIGNED, State.FAILED)
    if task.status.state is State.FAILED:
        assert "did not stop" in task.status.trace


def record(**changes: Any) -> SourceRecord:
    return SourceRecord(**{"topic": "t", "value": 1, **changes})


POLLED = {
    "number": (5, "poll"),
    "text": ("abc", "poll"),
    "mapping": ({"a": 1}, "poll"),
    "object": (object(), "poll"),
    "numbers": ([1, 2], "poll"),
    "none in list": ([None], "poll"),
    "mappings": ([{"topic": "t"}], "poll"),
    "sink record": ([SinkRecord("t", 0, 0)], "poll"),
    "no topic": ([record(topic=None)], "topic"),
    "topic number": ([record(topic=7)], "topic"),
    "topic name": ([record(topic="a/b")], "a/b"),
    "headers text": ([record(headers="abc")], "header"),
    "headers short": ([record(headers=[("a",)])], "header"),
    "header key": ([record(headers=[(1, None, "v")])], "header"),
    "timestamp text": ([record(timestamp="now")], "timestamp"),
    "timestamp low": ([record(timestamp=-7)], "timestamp"),
    "timestamp huge": ([record(timestamp=1 << 80)], "timestamp"),
    "partition text": ([record(partition="0")], "partition"),
    "partition low": ([record(partition=-2)], "partition"),
    "value object": ([record(value=object())], "object"),
    "offset object": ([record(source_partition={}, source_offset={"a": object()})], "offset"),
    "offset nan": ([record(source_partition={}, source_offset={"a": float("nan")})], "offset"),
    "offset list": ([record(source_partition={}, source_offset=[1])], "offset"),
    "partition list": ([record(source_partition=[1], source_offset={})], "partition"),
    "partition object": ([record(source_partition={"a": object()}, source_offset={})], "partition"),
}
"""Results of a `poll`, each with a word that the error has."""


@pytest.mark.parametrize("case", POLLED)
async def test_a_source_that_returns_nonsense(harness, fake_producer, case: str):
    returned, word = POLLED[case]
    task = source_task(harness, sabotaged(Numbers, "poll", lambda: returned))
    task.launch()
    await harness.until(lambda: task.status.state in (State.FAILED, State.RUNNING))
    await harness.in_state(task, State.FAILED)
    reason = task.status.trace.strip().splitlines()[-1]
    assert word in reason.lower(), reason
    await task.stop()


COMMITTED = {
    "number": (5, "pre_commit"),
    "text": ("abc", "pre_commit"),
    "list": ([TP], "pre_commit"),
    "text offset": ({TP: "5"}, "pre_commit"),
    "none offset": ({TP: None}, "pre_commit"),
    "negative": ({TP: -5}, "pre_commit"),
}
"""Results of a `pre_commit`, each with a word that the error has."""


@pytest.mark.parametrize("case", COMMITTED)
async def test_a_sink_that_commits_nonsense(harness, fake_consumer, case: str):
    returned, word = COMMITTED[case]
    task = sink_task(harness, sabotaged(Taker, "pre_commit", lambda: returned))
    task.launch()
    await feed(harness)
    await harness.in_state(task, State.FAILED)
    reason = task.status.trace.strip().splitlines()[-1]
    assert word in reason.lower(), reason
    await task.stop()
