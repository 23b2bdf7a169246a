"""Sinks: bad rows of a batch, dead letters, retries, transforms, and the reporter of `put`."""

import asyncio
import dataclasses
import threading

import pytest

from connect.api import SinkTask, TopicPartition
from connect.runtime.sink_task import WorkerSinkTask
from connect.runtime.states import State
from kafka_client.errors import ErrorCode, error_for
from tests.connect.errors.support import DEAD, Evens, Forget, Moody, Route, Twice, letters, transforms
from tests.connect.test_sink_task import A, B, Target

MIXED = (b"0", b"{", b"2", b"3", b"no JSON", b"5")


@pytest.fixture
def dead_producer(fake_producer, monkeypatch):
    monkeypatch.setattr("connect.runtime.errors.dead_letters.BatchProducer", fake_producer)
    return fake_producer


async def started(harness, plugin, config=(), **more):
    setting = harness.setting(topics="t", **dict(config), **more)
    task = WorkerSinkTask(setting, plugin)
    task.launch()
    await harness.in_state(task, State.RUNNING)
    (consumer,) = harness.client.consumers
    consumer.per_fetch = 100
    return task, consumer


async def test_bad_rows_go_to_the_dead_letter_queue_and_good_ones_on(harness, fake_consumer, dead_producer):
    plugin = Target()
    task, consumer = await started(harness, plugin, DEAD)
    consumer.write(A, *MIXED)
    await consumer.assign(A)
    await harness.until(lambda: consumer.committed_offsets == {A: 6})
    await task.stop()
    assert plugin.durable == {A: [0, 2, 3, 5]}
    (new,) = harness.admin.created
    assert (new.name, new.num_partitions, new.replication_factor) == ("dead", 1, 1)
    first, second = letters(harness.client.producers[0])
    assert (first.key, first.value, first.headers) == (b"k", b"{", ())
    assert second.value == b"no JSON"
    context = dict(second.context)
    assert "Traceback" in context.pop("exception.stacktrace").decode()
    assert b"is not JSON" in context.pop("exception.message")
    assert context == {
        "topic": b"t",
        "partition": b"0",
        "offset": b"4",
        "connector.name": b"c",
        "task.id": b"0",
        "stage": b"VALUE_CONVERTER",
        "class.name": b"connect.converters.json.JsonConverter",
        "exception.class.name": b"connect.errors.DataError",
    }
    errors = task.values()["task-error-metrics"]
    assert errors["total-record-errors"] == errors["total-records-skipped"] == 2
    assert errors["total-record-failures"] == 2
    assert (errors["deadletterqueue-produce-requests"], errors["deadletterqueue-produce-failures"]) == (2, 0)


async def test_without_context_a_dead_letter_is_the_record_as_read(harness, fake_consumer, dead_producer):
    config = DEAD | {"errors.deadletterqueue.context.headers.enable": "false"}
    task, consumer = await started(harness, Target(), config)
    consumer.write(A, b"{")
    await consumer.assign(A)
    await harness.until(lambda: consumer.committed_offsets == {A: 1})
    await task.stop()
    ((_, _, [record]),) = harness.client.producers[0].sent
    assert record == (0, b"k", b"{", ())


async def test_no_offset_is_committed_before_its_dead_letter_is_acknowledged(
    harness, fake_consumer, dead_producer
):
    dead_producer.acking = False
    task, consumer = await started(harness, Target(), DEAD)
    consumer.write(A, b"0", b"1", b"{", b"3")
    consumer.write(B, b"0")
    await consumer.assign(A, B)
    await harness.until(lambda: consumer.committed_offsets == {A: 2, B: 1})
    await harness.until(lambda: task.delivered == 4)
    assert consumer.committed_offsets == {A: 2, B: 1}
    harness.client.producers[0].futures[0].set_result(0)
    await harness.until(lambda: consumer.committed_offsets == {A: 4, B: 1})
    await task.stop()


async def test_a_dead_letter_that_cannot_be_written_fails_the_task(harness, fake_consumer, dead_producer):
    dead_producer.refuse = error_for(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "dead")
    task, consumer = await started(harness, Target(), DEAD)
    consumer.write(A, b"0", b"{", b"2")
    await consumer.assign(A)
    await harness.in_state(task, State.FAILED)
    assert "cannot be written to the dead letter queue dead" in task.status.trace
    assert "t-0, offset 1, value: " in task.status.trace
    assert consumer.committed_offsets.get(A, 0) <= 1
    assert task.values()["task-error-metrics"]["deadletterqueue-produce-failures"] == 1
    await task.stop()


async def test_without_tolerance_the_trace_names_place_and_stage(harness, fake_consumer, caplog):
    task, consumer = await started(
        harness, Target(), transforms(Evens), errors_log_enable="true", errors_tolerance="none"
    )
    consumer.write(A, b"2", b"13")
    await consumer.assign(A)
    await harness.in_state(task, State.FAILED)
    place = "t-0, offset 1, transform evens: ValueError('unlucky'); stage TRANSFORMATION"
    assert place in task.status.trace
    assert "in apply" in task.status.trace, "the plugin's own stack"
    assert f"c-0 fails: {place}" in caplog.text
    assert task.values()["task-error-metrics"]["total-records-skipped"] == 0
    await task.stop()


async def test_transforms_leave_out_and_multiply_records_and_offsets_pass_all(harness, fake_consumer):
    plugin = Target()
    task, consumer = await started(harness, plugin, transforms(Evens, Twice))
    consumer.write(A, b"1", b"2", b"4", b"5")
    await consumer.assign(A)
    await harness.until(lambda: consumer.committed_offsets == {A: 4})
    assert plugin.durable == {A: [2, -2, 4, -4]}
    consumer.write(A, b"7", b"9")  # of which nothing is left
    await harness.until(lambda: consumer.committed_offsets == {A: 6})
    await task.stop()
    assert task.delivered == 4


class Origins(Target):
    """Notes where records come from."""

    def put(self, records):
        self.origins = [(r.topic, r.original_topic, r.original_partition, r.original_offset) for r in records]


@pytest.mark.parametrize(("transform", "topic"), [(Route, "t-routed"), (Forget, "forgotten")])
async def test_records_keep_their_origin_behind_transforms(harness, fake_consumer, transform, topic):
    plugin = Origins()
    task, consumer = await started(harness, plugin, transforms(transform))
    for _ in range(2):  # the second batch goes another way when a transform makes its own records
        consumer.write(A, b"1", b"2")
        offsets = (len(consumer.logs[A]) - 2, len(consumer.logs[A]) - 1)
        if A not in consumer.positions:
            await consumer.assign(A)
        await harness.until(lambda: consumer.committed_offsets == {A: len(consumer.logs[A])})
        assert plugin.origins == [(topic, "t", 0, offset) for offset in offsets]
    await task.stop()


async def test_without_transforms_a_record_is_its_own_origin(harness, fake_consumer):
    plugin = Origins()
    task, consumer = await started(harness, plugin)
    consumer.write(A, b"1")
    await consumer.assign(A)
    await harness.until(lambda: consumer.committed_offsets == {A: 1})
    await task.stop()
    assert plugin.origins == [("t", "t", 0, 0)]


async def test_a_transform_that_is_worth_another_try_gets_it(harness, fake_consumer):
    Moody.failures = 3
    plugin = Target()
    task, consumer = await started(
        harness, plugin, transforms(Moody), **{"errors.retry.timeout": "-1", "errors.retry.delay.max.ms": "1"}
    )
    consumer.write(A, b"0", b"1", b"2")
    await consumer.assign(A)
    await harness.until(lambda: consumer.committed_offsets == {A: 3})
    await task.stop()
    assert plugin.durable == {A: [0, 1, 2]}
    errors = task.values()["task-error-metrics"]
    assert (errors["total-retries"], errors["total-record-failures"]) == (2, 2), "the first was the batch's"


async def test_a_stop_ends_a_retry_without_limit(harness, fake_consumer):
    Moody.failures = 1 << 40
    task, consumer = await started(
        harness,
        Target(),
        transforms(Moody),
        **{"errors.retry.timeout": "-1", "errors.retry.delay.max.ms": "5"},
    )
    consumer.write(A, b"0", b"1")
    await consumer.assign(A)
    await harness.until(lambda: task.metrics.retries > 2)
    await consumer.revoke(A)  # does not wait for the retry
    await task.stop()
    assert task.status.state is State.UNASSIGNED


class Reporting(Target):
    """Reports odd numbers from `put`, from a thread of its own if `threaded`."""

    threaded = False

    def __init__(self):
        self.reports = []

    def put(self, records):
        reporter = self.context.errant_record_reporter()
        for record in [r for r in records if r.value % 2]:
            if self.threaded:
                thread = threading.Thread(target=self.report, args=(reporter, record))
                thread.start()
                thread.join()
            else:
                self.report(reporter, record)
        super().put([r for r in records if not r.value % 2])

    def report(self, reporter, record):
        self.reports.append(reporter.report(record, ValueError(f"{record.value} is odd")))


@pytest.mark.parametrize("threaded", [False, True])
async def test_a_task_reports_records_it_cannot_write(harness, fake_consumer, dead_producer, threaded):
    dead_producer.acking = False
    plugin = Reporting()
    plugin.threaded = threaded
    task, consumer = await started(harness, plugin, DEAD | transforms(Route))
    consumer.write(A, b"0", b"2", b"3", b"4")
    await consumer.assign(A)
    await harness.until(lambda: consumer.committed_offsets == {A: 2})
    (report,) = plugin.reports
    assert not report.done()
    producer = harness.client.producers[0]
    await harness.until(lambda: producer.futures)
    producer.futures[0].set_result(0)
    await report
    await harness.until(lambda: consumer.committed_offsets == {A: 4})
    await task.stop()
    (letter,) = letters(producer)
    assert (letter.key, letter.value) == (b"k", b"3"), "as it was read"
    assert letter.context["stage"] == b"TASK_PUT"
    assert letter.context["exception.class.name"] == b"builtins.ValueError"
    assert letter.context["exception.message"] == b"3 is odd"
    assert letter.context["class.name"].endswith(b".Reporting")
    assert (letter.context["topic"], letter.context["offset"]) == (b"t", b"2")
    assert task.metrics.records_skipped == 1


async def test_an_async_task_reports_and_awaits(harness, fake_consumer, dead_producer):
    class Asynchronous(SinkTask):
        async def put(self, records):
            for record in records:
                if record.value < 0:
                    await self.context.errant_record_reporter().report(record, ValueError("negative"))

    task, consumer = await started(harness, Asynchronous(), DEAD)
    consumer.write(A, b"1", b"-1", b"2")
    await consumer.assign(A)
    await harness.until(lambda: consumer.committed_offsets == {A: 3})
    await task.stop()
    assert [letter.value for letter in letters(harness.client.producers[0])] == [b"-1"]


async def test_a_report_without_tolerance_fails_the_task_even_if_the_task_swallows_it(harness, fake_consumer):
    class Swallowing(Reporting):
        def report(self, reporter, record):
            try:
                super().report(reporter, record)
            except Exception:
                self.reports.append(None)

    task, consumer = await started(harness, Swallowing(), errors_log_enable="true")
    consumer.write(A, b"0", b"1")
    await consumer.assign(A)
    await harness.in_state(task, State.FAILED)
    assert "t-0, offset 1, put: ValueError('1 is odd'); stage TASK_PUT" in task.status.trace
    await task.stop()
    assert consumer.committed_offsets.get(A, 0) <= 1


async def test_without_a_queue_and_a_log_there_is_no_reporter(harness, fake_consumer):
    plugin = Target()
    task, _ = await started(harness, plugin)
    assert plugin.context.errant_record_reporter() is None
    await task.stop()


class Sizes(Target):
    """Notes how many records each `put` gets."""

    sizes = ()

    def put(self, records):
        self.sizes += (len(records),)
        super().put(records)


@pytest.mark.parametrize(
    ("config", "sizes"),
    [
        ({"consumer.override.max.poll.records": "4"}, (4, 4, 2)),
        ({"put.max.bytes": "6"}, (3, 3, 3, 1)),  # a key of one byte and a value of one byte each
        ({"put.max.bytes": "1"}, (1,) * 10),
        ({}, (10,)),
    ],
)
async def test_a_put_is_bounded_in_records_and_bytes(harness, fake_consumer, config, sizes):
    plugin = Sizes()
    task, consumer = await started(harness, plugin, config)
    consumer.parts = 1
    consumer.write(A, *(b"%d" % n for n in range(10)))
    await consumer.assign(A)
    await harness.until(lambda: consumer.committed_offsets == {A: 10})
    await task.stop()
    assert plugin.sizes == sizes
    assert plugin.durable == {A: list(range(10))}


async def test_a_topic_is_noted_once(harness, fake_consumer):
    noted = []
    setting = dataclasses.replace(harness.setting(topics="t"), note_topic=noted.append)
    task = WorkerSinkTask(setting, Target())
    task.launch()
    await harness.in_state(task, State.RUNNING)
    (consumer,) = harness.client.consumers
    consumer.write(A, *(b"1" for _ in range(20)))
    consumer.write(TopicPartition("t", 1), b"1")
    await consumer.assign(A, B)
    await harness.until(lambda: task.delivered == 21)
    await task.stop()
    assert noted == ["t"]


def test_many_dead_letters_without_acknowledgement_hold_the_task_up(
    harness, fake_consumer, dead_producer, monkeypatch
):
    """Bound the dead letters in flight; a stop does not wait for them for ever."""
    monkeypatch.setattr("connect.runtime.tolerance.UNWRITTEN_MAX", 3)
    harness.worker["offset.flush.timeout.ms"] = "1"
    dead_producer.acking = False

    async def run():
        task, consumer = await started(harness, Target(), DEAD)
        consumer.per_fetch, consumer.parts = 1, 20
        consumer.write(A, *[b"{"] * 20)
        await consumer.assign(A)
        producer = harness.client.producers[0]
        await harness.until(lambda: len(producer.futures) == 3)
        await harness.until(lambda: consumer.confirms > 3)
        assert len(producer.futures) == 3
        await task.stop()
        assert consumer.committed_offsets in ({}, {A: 0})

    asyncio.run(asyncio.wait_for(run(), 60))
