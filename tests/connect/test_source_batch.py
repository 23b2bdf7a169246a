"""A batch of columns: it is what the list of its records is, to its readers and to the worker."""

import asyncio

import pytest

from connect.api import DataError, SourceBatch, SourceRecord, SourceTask, schema
from connect.converters import make_converter, make_header_converter
from connect.runtime.batch_offsets import last_offsets
from connect.runtime.conversion import Conversion
from connect.runtime.source_task import WorkerSourceTask
from connect.runtime.states import State
from connect.stores import ConnectorOffsets
from connect.testing import MemoryOffsetStore

FILE = {"file": "a"}
BATCHES = [
    SourceBatch("t", ["a", None, "c"]),
    SourceBatch("t", ["a", "b"], keys=["k", None], timestamps=[None, 5]),
    SourceBatch("t", [1, {"a": 2}], timestamps=[-1, 7], source_partition=FILE),
    SourceBatch("t", ["a", "b"], source_partition=FILE, source_offset={"line": 2}),
    SourceBatch("t", ["a", "b"], source_offset={"line": 2}),
    SourceBatch("t", [1], keys=[2], key_schema=schema.int32(), value_schema=schema.int64(optional=True)),
]


def conversion(converter="json"):
    key, value = (make_converter(f"{part}.converter", converter, {}) for part in ("key", "value"))
    return Conversion(key, value, make_header_converter("simple", {}))


@pytest.fixture
def at_five(monkeypatch):
    """The time of sending is always 5 ms."""
    monkeypatch.setattr("time.time_ns", lambda: 5_000_000)


def test_a_batch_is_a_sequence_of_records():
    batch = SourceBatch(
        "t",
        ["a", "b", "c"],
        keys=[1, 2, 3],
        timestamps=[4, None, 6],
        source_partition=FILE,
        source_offset={"line": 3},
        key_schema=schema.int32(),
        value_schema=schema.string(),
    )
    common = {"source_partition": FILE, "key_schema": schema.int32(), "value_schema": schema.string()}
    records = [
        SourceRecord("t", "a", 1, 4, **common),
        SourceRecord("t", "b", 2, None, **common),
        SourceRecord("t", "c", 3, 6, source_offset={"line": 3}, **common),
    ]
    assert list(batch) == records
    assert (batch[0], batch[-1], batch[1:]) == (records[0], records[2], records[1:])
    assert (len(batch), bool(SourceBatch("t", []))) == (3, False)
    with pytest.raises(IndexError):
        batch[3]


@pytest.mark.parametrize("columns", [{"keys": [1]}, {"timestamps": [1, 2, 3]}])
def test_columns_of_different_lengths_are_refused(columns):
    with pytest.raises(ValueError, match=r"for 2 values"):
        SourceBatch("t", [1, 2], **columns)


@pytest.mark.parametrize("converter", ["json", "string"])
@pytest.mark.parametrize("batch", BATCHES)
def test_a_batch_is_converted_as_its_records_are(at_five, batch, converter):
    by_record = conversion(converter).to_log("t", list(batch))
    assert conversion(converter).to_log("t", batch) == by_record
    assert len(by_record) == len(batch)


@pytest.mark.parametrize("batch", BATCHES)
def test_a_batch_has_the_offsets_of_its_records(batch):
    offsets = ConnectorOffsets(MemoryOffsetStore(), "c")
    assert last_offsets(batch, offsets) == last_offsets(list(batch), offsets)


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        (SourceBatch("t", ["a"], timestamps=[1.5]), "timestamp for topic t is no whole number"),
        (SourceBatch("t", [object()]), "topic t"),
        (SourceBatch("t", ["a"], keys=[object()]), "topic t"),
    ],
)
def test_a_batch_that_does_not_convert_is_an_error_of_its_topic(batch, words):
    with pytest.raises(DataError, match=words):
        conversion().to_log("t", batch)


class Batches(SourceTask):
    """Returns the batches it was given, one a poll, then ends."""

    def __init__(self, *batches):
        self.batches = list(batches)

    def poll(self):
        if not self.batches:
            self.context.finished()
            return None
        return self.batches.pop(0)


def test_a_worker_sends_batches_by_their_keys_and_commits_their_offsets(harness, fake_producer):
    keys = [str(n) for n in range(10)]
    batches = [
        SourceBatch("t", range(10), keys=keys, source_partition=FILE, source_offset={"line": 10}),
        SourceBatch("u", range(10, 12), source_partition=FILE, source_offset={"line": 12}),
    ]
    by_record = [list(batch) for batch in batches]

    async def sent(polls):
        task = WorkerSourceTask(harness.setting(), Batches(*polls), harness.store)
        task.launch()
        await harness.until(lambda: task.is_done)
        await task.stop()
        assert (task.polled, task.acked) == (12, 12)
        assert harness.store.offsets == {b'["c",{"file":"a"}]': b'{"line":12}'}
        harness.store.offsets.clear()
        return [(topic, n, [r[1:] for r in records]) for topic, n, records in task._producer.sent]

    of_batches, of_records = asyncio.run(sent(batches)), asyncio.run(sent(by_record))
    assert of_batches == of_records
    assert {(topic, n) for topic, n, _ in of_batches} == {("t", 0), ("t", 1), ("u", 0)}


async def test_a_batch_without_a_topic_fails_its_task(harness, fake_producer):
    task = WorkerSourceTask(harness.setting(), Batches(SourceBatch("", ["a"])), harness.store)
    task.launch()
    await harness.in_state(task, State.FAILED)
    assert "a record has no topic" in task.status.trace
