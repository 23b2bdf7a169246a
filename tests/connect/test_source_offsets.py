"""Which source offsets are stored: none ahead of what is acknowledged, and those of what was skipped, too."""

import asyncio
import json

import pytest

from connect.api import Config, RetriableError, SourceRecord, SourceTask, source
from connect.runtime.source_task import WorkerSourceTask
from connect.runtime.submitted import SubmittedOffsets
from connect.testing import SourceRun
from tests.support.depth import deep

A, B = b"a", b"b"


def test_a_batch_without_offsets_holds_up_what_comes_after_it():
    """Batches without offsets are queued, and hold up the offsets of the batches after them.

    Once such a batch was not queued. The next batch's offset was committed before the first was acknowledged,
    and after a restart the first was not sent again.
    """
    submitted = SubmittedOffsets()
    first = submitted.submit({A: None})
    second = submitted.submit({A: b"2"})
    second.acked()
    assert submitted.take_committable() == {}
    first.acked()
    assert submitted.take_committable() == {A: b"2"}
    assert submitted.pending == 0


def test_records_of_no_source_partition_hold_up_every_partition():
    submitted = SubmittedOffsets()
    before = submitted.submit({B: b"1"})
    loose = submitted.submit({}, uncovered=True)
    after = submitted.submit({A: b"2", B: b"2"})
    before.acked()
    after.acked()
    assert submitted.take_committable() == {B: b"1"}
    loose.acked()
    assert submitted.take_committable() == {A: b"2", B: b"2"}


def test_a_slow_partition_does_not_hold_up_the_others():
    submitted = SubmittedOffsets()
    submitted.submit({A: None})
    submitted.submit({B: b"1"}).acked()
    assert submitted.take_committable() == {B: b"1"}


def test_what_is_acknowledged_is_not_kept_until_it_is_taken():
    """Acknowledged batches of a source without offsets, or with rare commits, do not fill the memory."""
    submitted = SubmittedOffsets()
    for i in range(1000):
        submitted.submit({A: b"%d" % i}).acked()
        submitted.submit({}, uncovered=True).acked()
    assert submitted.pending <= 4
    assert submitted.take_committable() == {A: b"999"}


class Scripted(SourceTask):
    """Returns the batches it was given, then nothing."""

    def __init__(self, *batches):
        self.batches = list(batches)
        self.updates = []

    def poll(self):
        return self.batches.pop(0) if self.batches else None

    def update_offsets(self):
        updates, self.updates = self.updates, []
        return updates


def record(n, partition=None, offset=None):
    return SourceRecord("t", n, source_partition=partition, source_offset=offset)


@pytest.mark.parametrize(
    "first",
    [
        [record(1)],
        [record(1, {"s": 1})],
        [record(1, None, {"n": 1})],
        [record(0, {"s": 2}, {"n": 0}), record(1)],
    ],
    ids=["no partition", "no offset", "an offset of no partition", "behind the last offset"],
)
async def test_an_unacknowledged_batch_without_offsets_is_not_passed_by_the_next(
    harness, fake_producer, first
):
    fake_producer.acking = False
    harness.worker["offset.flush.timeout.ms"] = "0"
    plugin = Scripted(first, [record(2, {"s": 1}, {"n": 2})])
    task = WorkerSourceTask(harness.setting(), plugin, harness.store)
    task.launch()
    await harness.until(lambda: harness.client.producers and len(harness.client.producers[0].sent) == 2)
    (producer,) = harness.client.producers
    producer.futures[1].set_result(0)
    await harness.until(lambda: task.acked == 1)
    await task._commit()
    assert harness.store.offsets == {}
    producer.futures[0].set_result(0)
    await harness.until(lambda: harness.store.offsets.get(b'["c",{"s":1}]') == b'{"n":2}')
    await task.stop()


async def test_an_offset_without_a_record_is_stored_behind_what_was_returned_before(harness, fake_producer):
    """KIP-910: a source that filters its input must not read all of it again after each restart."""
    fake_producer.acking = False
    harness.worker["offset.flush.timeout.ms"] = "0"
    plugin = Scripted([record(1, {"s": 1}, {"n": 1})])
    task = WorkerSourceTask(harness.setting(), plugin, harness.store)
    task.launch()
    await harness.until(lambda: task.polled == 1)
    plugin.updates = [({"s": 1}, {"n": 50}), ({"s": 2}, {"n": 7})]
    await harness.until(lambda: harness.store.offsets == {b'["c",{"s":2}]': b'{"n":7}'})
    assert plugin.updates == []
    harness.client.producers[0].futures[0].set_result(0)
    await harness.until(lambda: harness.store.offsets.get(b'["c",{"s":1}]') == b'{"n":50}')
    await task.stop()


async def test_a_stop_asks_for_offsets_without_records(harness, fake_producer):
    harness.worker["offset.flush.interval.ms"] = "60000"
    plugin = Scripted()
    task = WorkerSourceTask(harness.setting(), plugin, harness.store)
    task.launch()
    await harness.until(lambda: task.status.state == "RUNNING")
    plugin.updates = [({"s": 1}, {"n": 50})]
    await task.stop()
    assert harness.store.offsets == {b'["c",{"s":1}]': b'{"n":50}'}


def filtering(kind):
    """Return a generator of this kind that reads 30 inputs and yields a record for each of the first 10."""
    reads = []

    def plain(config, state):
        for n in range(state.get("next", 0), 30):
            reads.append(n)
            state["next"] = n + 1
            yield SourceRecord("t", n) if n < 10 else None

    async def asynchronous(config, state):
        for one in plain(config, state):
            yield one

    function = plain if kind == "plain" else asynchronous
    return source(name="filtering", config=Config, batch_size=4)(function), reads


@deep
@pytest.mark.parametrize("kind", ["plain", "async"])
def test_a_generator_that_skips_input_does_not_repeat_it_for_ever(harness, fake_producer, kind):
    connector, reads = filtering(kind)

    async def run():
        for _ in range(2):
            task = WorkerSourceTask(harness.setting(), connector.task_class(), harness.store)
            task.launch()
            await harness.until(lambda task=task: task.is_done)
            await task.stop()

    asyncio.run(run())
    assert reads == list(range(30))
    assert [json.loads(value) for value in harness.store.offsets.values()] == [{"next": 30}]


def test_the_kit_stores_what_was_skipped():
    connector, reads = filtering("plain")
    run = SourceRun(connector, {})
    while len(reads) < 20:
        run.poll()
    run.commit()
    again = run.again()
    again.poll()
    assert reads == list(range(21))
    again.stop()


def test_a_skipping_generator_that_fails_for_a_moment_goes_on_behind_what_it_skipped(harness, fake_producer):
    reads = []

    @source(name="shaky")
    def shaky(config, state):
        for n in range(state.get("next", 0), 4):
            reads.append(n)
            state["next"] = n + 1
            yield None
            if n == 2 and reads.count(2) == 1:
                raise RetriableError("not now")

    async def run():
        task = WorkerSourceTask(harness.setting(), shaky.task_class(), harness.store)
        task.launch()
        await harness.until(lambda: task.is_done)
        await task.stop()

    asyncio.run(run())
    assert reads == [0, 1, 2, 3]
    assert [json.loads(value) for value in harness.store.offsets.values()] == [{"next": 4}]
