"""Sources: bad rows, dead letters, retries, transforms, refused sends and `commit_record`."""

import asyncio
import dataclasses
import json

import pytest

from connect.api import SourceBatch, SourceRecord, SourceTask, Transform
from connect.runtime.source_task import WorkerSourceTask
from connect.runtime.states import State
from kafka_client.errors import ErrorCode, error_for
from tests.connect.errors.support import DEAD, Evens, Moody, Twice, letters, transforms

KEY = b'["c",{"s":1}]'


@pytest.fixture
def dead_producer(fake_producer, monkeypatch):
    monkeypatch.setattr("connect.runtime.errors.dead_letters.BatchProducer", fake_producer)
    return fake_producer


def record(value, n=0, **more):
    return SourceRecord("t", value, f"k{n}", n, 0, source_partition={"s": 1}, source_offset={"n": n}, **more)


class Polls(SourceTask):
    """Returns the polls it was given, then ends."""

    def __init__(self, *polls):
        self.polls = list(polls)
        self.committed = []

    def poll(self):
        if not self.polls:
            self.context.finished()
            return None
        return self.polls.pop(0)


class Following(Polls):
    def commit_record(self, record, metadata):
        self.committed.append((record.value, metadata))


class FollowingAsync(Polls):
    async def commit_record(self, record, metadata):
        self.committed.append((record.value, metadata))


async def ended(harness, plugin, config=()):
    task = WorkerSourceTask(harness.setting(**dict(config)), plugin, harness.store)
    task.launch()
    await harness.until(lambda: task.is_done or task.status.state is State.FAILED)
    await task.stop()
    assert task.is_done, task.status.trace
    return task


def sent(harness, topic="t"):
    return [
        record[2]
        for producer in harness.client.producers
        for name, _, records in producer.sent
        if name == topic
        for record in records
    ]


async def test_rows_that_do_not_convert_are_dead_letters_of_a_source(harness, dead_producer):
    bad = record({"o": object(), "b": b"\xff"}, 2, headers=[("h", None, 1)])
    task = await ended(harness, Polls([record(1, 1), bad, record(3, 3)], [record(4, 4)]), DEAD)
    assert sent(harness) == [b"1", b"3", b"4"]
    assert harness.store.offsets == {KEY: b'{"n":4}'}
    (letter,) = letters(harness.client.producers[1])
    described = json.loads(letter.value)
    assert described.pop("value")["b"] == "/w=="
    assert described == {
        "topic": "t",
        "partition": 0,
        "timestamp": 2,
        "key": "k2",
        "headers": [{"name": "h", "value": 1}],
        "source_partition": {"s": 1},
        "source_offset": {"n": 2},
    }
    context = letter.context
    assert context["stage"] == b"VALUE_CONVERTER"
    assert (context["source.topic"], context["source.partition"]) == (b"t", b'{"s":1}')
    assert (context["source.offset"], context["format"]) == (b'{"n":2}', b"described")
    assert "offset" not in context, "it is a place in the log, which this record never had"
    assert (task.acked, task.metrics.written, task.metrics.records_skipped) == (4, 3, 1)


async def test_without_tolerance_a_source_fails_and_names_the_place(harness, fake_producer):
    task = WorkerSourceTask(harness.setting(), Polls([record(1, 1), record(object(), 2)]), harness.store)
    task.launch()
    await harness.in_state(task, State.FAILED)
    assert """a record for topic 't', source partition {"s":1}, source offset {"n":2}, value: """ in (
        task.status.trace
    )
    assert "stage VALUE_CONVERTER" in task.status.trace
    await task.stop()
    assert harness.store.offsets == {}


async def test_no_source_offset_is_committed_before_its_dead_letter(harness, dead_producer):
    task = WorkerSourceTask(harness.setting(**DEAD), Polls([record(object(), 1)]), harness.store)
    dead_producer.acking = False
    task.launch()
    await harness.until(lambda: len(harness.client.producers) == 2 and harness.client.producers[1].futures)
    for _ in range(5):
        await task._commit()
    assert harness.store.offsets == {}
    harness.client.producers[1].futures[0].set_result(0)
    await harness.until(lambda: task.is_done)
    assert harness.store.offsets == {KEY: b'{"n":1}'}
    await task.stop()


async def test_offsets_of_dropped_records_count(harness, fake_producer):
    polls = ([record(2, 1), record(3, 2)], [record(5, 3)])
    task = await ended(harness, Polls(*polls), transforms(Evens, Twice))
    assert sent(harness) == [b"2", b"-2"]
    assert harness.store.offsets == {KEY: b'{"n":3}'}
    assert (task.acked, task.metrics.written) == (3, 2)
    assert task.values()["source-task-metrics"]["source-record-write-total"] == 2


async def test_a_batch_in_columns_goes_through_transforms(harness, fake_producer):
    batch = SourceBatch("t", [1, 2, 4], source_partition={"s": 1}, source_offset={"n": 3})
    await ended(harness, Polls(batch), transforms(Evens))
    assert sent(harness) == [b"2", b"4"]
    assert harness.store.offsets == {KEY: b'{"n":3}'}


class ToTopic(Transform):
    def apply(self, record):
        record.topic = "u" if record.value % 2 else "t"
        return record


async def test_transforms_choose_topics_and_each_is_noted_once(harness, fake_producer):
    noted = []
    setting = dataclasses.replace(
        harness.setting(**{"transforms": "a", "transforms.a.type": f"{__name__}:ToTopic"}),
        note_topic=noted.append,
    )
    polls = [[record(n, n) for n in range(4)], [record(4, 4)]]
    task = WorkerSourceTask(setting, Polls(*polls), harness.store)
    task.launch()
    await harness.until(lambda: task.is_done)
    await task.stop()
    assert (sent(harness), sent(harness, "u")) == ([b"0", b"2", b"4"], [b"1", b"3"])
    assert sorted(noted) == ["t", "u"]


async def test_a_source_tries_transforms_again(harness, fake_producer):
    Moody.failures = 3
    retries = {"errors.retry.timeout": "-1", "errors.retry.delay.max.ms": "1"}
    task = await ended(harness, Polls([record(0, 1), record(1, 2)]), transforms(Moody) | retries)
    assert sent(harness) == [b"0", b"1"]
    assert task.values()["task-error-metrics"]["total-retries"] == 2


@pytest.mark.parametrize("plugin", [Following, FollowingAsync])
async def test_commit_record_has_each_records_place(harness, fake_producer, plugin):
    offsets = iter(range(100, 200))
    original = fake_producer.send

    async def send(self, topic, partition, records):
        future = await original(self, topic, partition, records)
        if not future.done():
            future.set_result(next(offsets))
        return future

    fake_producer.send, fake_producer.acking = send, False
    task = plugin([record(2, 1), record(3, 2)], [record(4, 3), record(13, 4)])
    await ended(harness, task, transforms(Evens) | {"errors.tolerance": "all"})
    values = [(value, metadata and tuple(metadata)) for value, metadata in task.committed]
    assert values == [(2, ("t", 0, 100, 1)), (3, None), (4, ("t", 0, 101, 3)), (13, None)]


class Refusing:
    """Refuses records with some values, as `send` (too large) or as the broker."""

    def __init__(self, producer_class, values, *, at_once):
        original = producer_class.send

        async def send(producer, topic, partition, records):
            if topic == "t" and any(r[2] in values for r in records):
                error = error_for(ErrorCode.MESSAGE_TOO_LARGE if at_once else ErrorCode.INVALID_RECORD, "t-0")
                if at_once:
                    raise error
                future = asyncio.get_running_loop().create_future()
                future.set_exception(error)
                return future
            return await original(producer, topic, partition, records)

        producer_class.send = send


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("plugin", [Polls, Following])
async def test_records_that_the_broker_refuses_are_left_out_alone(harness, dead_producer, at_once, plugin):
    Refusing(dead_producer, (b"2", b"5"), at_once=at_once)
    task = plugin([record(n, n) for n in range(8)])
    ran = await ended(harness, task, DEAD)
    assert sorted(sent(harness)) == [b"0", b"1", b"3", b"4", b"6", b"7"]
    dead = letters(harness.client.producers[1])
    assert sorted(letter.value for letter in dead) == [b"2", b"5"], "with their bytes"
    assert {letter.context["stage"] for letter in dead} == {b"KAFKA_PRODUCE"}
    assert all("format" not in letter.context for letter in dead)
    assert harness.store.offsets == {KEY: b'{"n":7}'}
    assert (ran.acked, ran.metrics.written, ran.metrics.records_skipped) == (8, 6, 2)
    if plugin is Following:
        assert {value: metadata is None for value, metadata in task.committed} == {
            n: n in (2, 5) for n in range(8)
        }


async def test_an_error_of_the_whole_topic_leaves_its_batch_out(harness, dead_producer):
    dead_producer.refuse = error_for(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "t")
    config = {"errors.tolerance": "all", "errors.log.enable": "true"}
    task = await ended(harness, Polls([record(1, 1), record(2, 2)]), config)
    assert (task.metrics.records_skipped, task.metrics.logged) == (2, 2)


async def test_a_fenced_producer_is_not_tolerated(harness, fake_producer):
    fake_producer.refuse = error_for(ErrorCode.INVALID_PRODUCER_EPOCH, "t")
    setting = harness.setting(**{"errors.tolerance": "all"})
    task = WorkerSourceTask(setting, Polls([record(1, 1)]), harness.store)
    task.launch()
    await harness.in_state(task, State.FAILED)
    await task.stop()
    assert harness.store.offsets == {}


async def test_a_record_without_a_topic_can_be_left_out(harness, dead_producer):
    nowhere = record(1, 1)
    nowhere.topic = ""
    await ended(harness, Polls([nowhere, record(2, 2)]), DEAD)
    assert sent(harness) == [b"2"]
    (letter,) = letters(harness.client.producers[1])
    assert b"has no topic" in letter.context["exception.message"]
