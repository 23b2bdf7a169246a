"""A running source task: what is committed when, and what failure, pause and stop do."""

import asyncio
import json
import sys
import threading
from types import SimpleNamespace

import pytest

from connect.api import RetriableError, SourceRecord, SourceTask
from connect.converters import Converter
from connect.runtime.source_task import WorkerSourceTask
from connect.runtime.states import State
from kafka_client.errors import ConnectionClosed, ErrorCode, KafkaError, RequestTimedOut, error_for


class Counting(SourceTask):
    """Hands out batches of two; sync, so it runs in its thread."""

    batches = 3

    def start(self, config):
        self.next = (self.context.offsets.offset({"s": 1}) or {"n": 0})["n"]
        self.thread = threading.current_thread()
        self.events = []

    def poll(self):
        assert threading.current_thread() is self.thread
        if self.next >= self.batches * 2:
            self.context.finished()
            return None
        n, self.next = self.next, self.next + 2
        return [
            SourceRecord("t", {"n": i}, str(i), i, source_partition={"s": 1}, source_offset={"n": i + 1})
            for i in (n, n + 1)
        ]

    def commit(self):
        self.events.append("commit")

    def stop(self):
        assert threading.current_thread() is self.thread
        self.events.append("stop")


class Endless(Counting):
    batches = 1 << 60


class Async(SourceTask):
    """Waits for ever after one batch."""

    async def start(self, config):
        self.first = True

    async def poll(self):
        if not self.first:
            await asyncio.Event().wait()
        self.first = False
        return [SourceRecord("t", 1), SourceRecord("u", 2, partition=0, headers=[("h", None, "v")])]


KEY = b'["c",{"s":1}]'


def failure_of(harness, plugin):
    """Return the stack trace that a failing task reports."""

    async def run():
        task = WorkerSourceTask(harness.setting(), plugin, harness.store)
        task.launch()
        await harness.in_state(task, State.FAILED)
        return task.status.trace

    return asyncio.run(run())


async def test_a_source_that_ends_is_done_with_everything_committed(harness, fake_producer):
    plugin = Counting()
    task = WorkerSourceTask(harness.setting(), plugin, harness.store)
    task.launch()
    await harness.until(lambda: task.is_done)
    await task.stop()
    assert task.status.state is State.RUNNING
    assert (task.polled, task.acked) == (6, 6)
    assert harness.store.offsets == {KEY: b'{"n":6}'}
    assert plugin.events[-2:] == ["commit", "stop"]
    (producer,) = harness.client.producers
    assert sorted(producer.values) == [b'{"n":%d}' % i for i in range(6)]
    by_key = {record[1]: partition for _, partition, records in producer.sent for record in records}
    assert set(by_key.values()) == {0, 1}
    assert {record[0] for _, _, records in producer.sent for record in records} == set(range(6))


async def test_offsets_never_pass_what_is_acknowledged(harness, fake_producer):
    fake_producer.acking = False
    task = WorkerSourceTask(harness.setting(), Counting(), harness.store)
    task.launch()
    await harness.until(lambda: task.polled == 6)
    (producer,) = harness.client.producers
    await harness.until(lambda: sum(len(records) for _, _, records in producer.sent) == 6)
    numbers = [[int(record[1]) for record in records] for _, _, records in producer.sent]
    last = len(numbers) - 1
    for future in producer.futures[1:]:  # all but the first part of the first batch
        future.set_result(0)
    await asyncio.sleep(0.05)  # several commit intervals: nothing may happen
    assert harness.store.offsets == {}
    assert not task.is_done
    producer.futures[0].set_result(0)
    await harness.until(lambda: harness.store.offsets == {KEY: b'{"n":6}'})
    await harness.until(lambda: task.is_done)
    assert numbers[last]


async def test_a_batch_that_is_refused_fails_the_task_and_holds_the_offset(harness, fake_producer):
    fake_producer.refuse = error_for(ErrorCode.MESSAGE_TOO_LARGE, "t-0")
    plugin = Endless()
    task = WorkerSourceTask(harness.setting(), plugin, harness.store)
    task.launch()
    await harness.in_state(task, State.FAILED)
    assert "MESSAGE_TOO_LARGE" in task.status.trace
    assert harness.store.offsets == {}
    assert plugin.events == ["stop"]
    assert task.acked == 0


async def test_a_stopped_task_has_committed_and_the_next_goes_on_there(harness, fake_producer):
    first = WorkerSourceTask(harness.setting(), Endless(), harness.store)
    first.launch()
    await harness.until(lambda: first.acked > 10)
    await first.stop()
    assert first.status.state is State.UNASSIGNED
    assert harness.store.offsets == {KEY: b'{"n":%d}' % first.acked}
    second = WorkerSourceTask(harness.setting(), Endless(), harness.store)
    second.launch()
    await harness.until(lambda: second.acked > 10)
    await second.stop()
    one, two = (producer.values for producer in harness.client.producers)
    assert min(json.loads(value)["n"] for value in two) == first.acked
    assert len(set(one) & set(two)) == 0


async def test_a_failing_plugin_fails_alone_with_its_trace(harness, fake_producer):
    class Broken(Counting):
        def poll(self):
            raise ZeroDivisionError("broken here")

    broken = WorkerSourceTask(harness.setting(), Broken(), harness.store)
    healthy = WorkerSourceTask(harness.setting(), Counting(), harness.store)
    broken.launch()
    healthy.launch()
    await harness.in_state(broken, State.FAILED)
    await harness.until(lambda: healthy.is_done)
    assert "broken here" in broken.status.trace
    assert "in poll" in broken.status.trace
    await broken.stop()
    assert broken.status.state is State.FAILED


async def test_a_retriable_failure_of_polling_is_tried_again(harness, fake_producer):
    class Shaky(Counting):
        failures = 2

        def poll(self):
            if self.failures:
                self.failures -= 1
                raise RetriableError("not yet")
            return super().poll()

    task = WorkerSourceTask(harness.setting(), Shaky(), harness.store)
    task.launch()
    await harness.until(lambda: task.is_done)
    await task.stop()
    assert (task.polled, task.acked) == (6, 6)


async def test_an_async_plugin_is_interrupted_by_stop(harness, fake_producer):
    task = WorkerSourceTask(harness.setting(), Async(), harness.store)
    task.launch()
    await harness.until(lambda: task.acked == 2)
    await task.stop()
    assert task.status.state is State.UNASSIGNED
    (producer,) = harness.client.producers
    assert [(t, p) for t, p, _ in producer.sent] == [("t", 0), ("u", 0)]
    assert producer.sent[1][2][0][3] == (("h", b"v"),)


async def test_a_plugin_that_hangs_is_abandoned(harness, fake_producer):
    released = threading.Event()

    class Hanging(Counting):
        def poll(self):
            released.wait()

    harness.worker |= {"task.shutdown.graceful.timeout.ms": "20", "offset.flush.timeout.ms": "20"}
    task = WorkerSourceTask(harness.setting(), Hanging(), harness.store)
    task.launch()
    await harness.in_state(task, State.RUNNING)
    try:
        await task.stop()
    finally:
        released.set()


async def test_pause_and_resume(harness, fake_producer):
    task = WorkerSourceTask(harness.setting(), Endless(), harness.store)
    task.launch()
    await harness.until(lambda: task.acked > 0)
    task.pause()
    await harness.in_state(task, State.PAUSED)
    polled = task.polled
    await asyncio.sleep(0.02)
    assert task.polled == polled
    task.resume()
    await harness.until(lambda: task.polled > polled)
    task.pause()
    await harness.in_state(task, State.PAUSED)
    await task.stop()
    assert task.status.state is State.UNASSIGNED


async def test_topics_are_created_as_the_connector_says(harness, fake_producer):
    class New(Counting):
        batches = 1

        def poll(self):
            return [SourceRecord("new", r.value) for r in super().poll() or []]

    config = {
        "topic.creation.default.partitions": "3",
        "topic.creation.default.replication.factor": "1",
        "topic.creation.default.cleanup.policy": "compact",
    }
    task = WorkerSourceTask(harness.setting(**config), New(), harness.store)
    task.launch()
    await harness.until(lambda: task.is_done)
    (topic,) = harness.admin.created
    assert (topic.name, topic.num_partitions, topic.replication_factor) == ("new", 3, 1)
    assert topic.configs == {"cleanup.policy": "compact"}


async def test_producer_settings_come_from_worker_and_connector(harness, fake_producer):
    harness.worker |= {"producer.linger.ms": "20", "producer.acks": "1"}
    setting = harness.setting(
        **{"producer.override.acks": "all", "producer.override.compression.type": "lz4"}
    )
    task = WorkerSourceTask(setting, Counting(), harness.store)
    task.launch()
    await harness.until(lambda: task.is_done)
    (producer,) = harness.client.producers
    assert producer.arguments == {
        "linger_ms": 20.0,
        "acks": -1,
        "compression_type": "lz4",
        "delivery_timeout_ms": 2**31 - 1,  # a broker that is away is waited for
    }


def test_a_broker_that_is_away_is_waited_for(harness, fake_producer, monkeypatch):
    """logd is restarted: metadata cannot be had for longer than a request's timeout."""
    monkeypatch.setattr("connect.runtime.task.BACKOFF_FIRST_SECONDS", 0.001)
    away = [ConnectionClosed("away"), RequestTimedOut("away"), error_for(ErrorCode.NOT_CONTROLLER, "away")]
    topic = harness.client.topic

    async def unreachable_first(name):
        if away:
            raise away.pop()
        return await topic(name)

    async def run():
        harness.client.topic = unreachable_first
        task = WorkerSourceTask(harness.setting(), Counting(), harness.store)
        task.launch()
        await harness.until(lambda: task.is_done)
        assert (task.acked, away) == (6, [])

    asyncio.run(run())


def test_a_record_that_is_too_large_is_told_with_its_remedy(harness, fake_producer, monkeypatch):
    async def refuse(self, topic, partition, records):
        raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, "t-0: a record of 9 bytes, max_request_size is 8")

    monkeypatch.setattr(fake_producer, "send", refuse)

    trace = failure_of(harness, Counting())
    for words in ("9 bytes", "is 8", "producer.override.max.request.size", "max.message.bytes"):
        assert words in trace


def test_headers_of_another_shape_are_refused_in_words(harness, fake_producer):
    class Pairs(Counting):
        def poll(self):
            return [SourceRecord("t", 1, headers=[("h", "v")])]

    assert "each is (name, schema or None, value)" in failure_of(harness, Pairs())


async def test_an_offset_counts_as_it_was_when_its_record_was_returned(harness, fake_producer):
    """Changes that a task makes to an offset after it returned the record are not committed."""
    fake_producer.acking = False
    harness.worker["offset.flush.timeout.ms"] = "0"

    class OneDict(SourceTask):
        offset = {"n": 0}

        def poll(self):
            self.offset["n"] += 1
            return [SourceRecord("t", 1, source_partition={"s": 1}, source_offset=self.offset)]

    task = WorkerSourceTask(harness.setting(), OneDict(), harness.store)
    task.launch()
    await harness.until(lambda: task.polled >= 3)
    (producer,) = harness.client.producers
    producer.futures[0].set_result(0)
    await harness.until(lambda: KEY in harness.store.offsets)
    assert harness.store.offsets == {KEY: b'{"n":1}'}
    await task.stop()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"timestamp": 1.5}, "no whole number of ms"),
        ({"topic": None}, "no topic"),
        ({"source_offset": 5}, "a source offset must be a dict of JSON values, not 5"),
        ({"source_partition": "a"}, "a source partition must be a dict of JSON values, not 'a'"),
    ],
)
def test_a_record_that_cannot_be_sent_says_why(harness, fake_producer, wrong, words):
    class Wrong(SourceTask):
        def poll(self):
            right = {"topic": "t", "value": 1, "source_partition": {"s": 1}, "source_offset": {"n": 1}}
            return [SourceRecord(**{**right, **wrong})]

    assert words in failure_of(harness, Wrong())


def test_a_converter_that_makes_no_bytes_is_named(harness, fake_producer, monkeypatch):
    monkeypatch.setitem(sys.modules, "my_converters", SimpleNamespace(Texts=Texts))
    harness.worker["value.converter"] = "my_converters:Texts"

    trace = failure_of(harness, Counting())
    assert "Texts.from_connect must give NoneType or bytes for each record, not str" in trace


class Texts(Converter):
    """Forgets to encode."""

    def from_connect(self, topic, schema, value):
        return str(value)


@pytest.mark.parametrize("end", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()])
def test_a_plugin_that_would_end_the_process_fails_its_own_task_only(harness, fake_producer, end):
    class Leaving(Counting):
        def poll(self):
            raise end

    assert type(end).__name__ in failure_of(harness, Leaving())


def test_an_async_plugin_that_exits_fails_its_own_task_only(harness, fake_producer):
    class Leaving(Async):
        async def poll(self):
            raise SystemExit(3)

    assert "SystemExit(3)" in failure_of(harness, Leaving())
