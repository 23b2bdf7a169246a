"""A running sink task of columns: what columns come of the log, their bounds, and bad rows."""

import datetime
import json

import pyarrow as pa
import pytest

from connect.api import ColumnarSinkTask
from connect.converters import make_converter
from connect.runtime import State
from connect.runtime.columnar.from_records import column_batches
from connect.runtime.columnar.parts import columnar_parts
from connect.runtime.columnar_sink_task import WorkerColumnarSinkTask
from kafka_client import Fetched, TopicPartition
from kafka_client.records import Codec, assign_offset, build_batch
from kafka_client.wire import NO_UUID
from tests.connect.errors.support import DEAD, Route, letters, transforms

TP = TopicPartition("t", 0)


def fetched_of(*batches, position=0, codec=Codec.NONE):
    """Return batches of (timestamp, key, value, headers) as a broker sends them, from offset 0 on."""
    data, offset = bytearray(), 0
    for records in batches:
        batch = bytearray(build_batch(records, codec=codec))
        assign_offset(batch, offset, 0)
        data += batch
        offset += len(records)
    return Fetched(TP, position, offset, memoryview(bytes(data)), topic_id=NO_UUID)


def records_of(*values):
    return [(n, b"k", value, ()) for n, value in enumerate(values)]


def parts_of(fetched, records=1000, size=1 << 20):
    return list(columnar_parts(fetched, records, size))


@pytest.mark.parametrize("codec", list(Codec))
def test_parts_have_the_records_of_all_batches(codec):
    batches = (
        [(5, b"a", b"1", ()), (6, None, None, (("h", b"x"),))],
        [(7, b"", b"2", ())],
    )
    (part,) = parts_of(fetched_of(*batches, codec=codec))
    assert list(part.records) == [
        (0, 5, b"a", b"1", ()),
        (1, 6, None, None, (("h", b"x"),)),
        (2, 7, b"", b"2", ()),
    ]
    assert (part.next_offset, part.timestamp_type, len(part.records)) == (3, 0, 3)


@pytest.mark.parametrize(("records", "size"), [(3, 1 << 20), (1000, 40), (1000, 1), (4, 25)])
def test_parts_are_bounded_and_follow_each_other(records, size):
    batches = [records_of(*[b"x" * 9] * 7), records_of(*[b"y" * 9] * 5)]
    parts = parts_of(fetched_of(*batches, position=2), records, size)
    offsets = [record[0] for part in parts for record in part.records]
    assert offsets == list(range(2, 12))
    for part in parts:
        assert len(part.records) <= records
        assert len(part.records) == 1 or sum(len(r[2]) + len(r[3]) for r in part.records) <= size
    ends = [part.next_offset for part in parts]
    starts = [part.records[0][0] for part in parts if part.records]
    assert ends[-1] == 12
    assert starts[1:] == ends[: len(starts) - 1]


VALUES = [
    [{"a": 1, "b": "x"}, {"a": 2, "c": [1, 2]}],
    [{"a": 1}, None, {"b": {"c": 1.5}}],
    [{"when": "2013-01-01T10:00:00Z"}, {"when": "2013-01-01"}],
    [{"n": [{"when": "2013-01-01"}]}],
    [{"a": 2**53 + 1, "b": 1.5}],
    [{"a": 2**53 + 1}, {"a": 1.5}],
    [{}, {}],
    [None, None],
    [{"a": "\u00e9\n"}, {"a": None}],
    [{"a": True}, {"a": False}],
    [1, 2],
    ["x", None],
]


@pytest.mark.parametrize("values", VALUES, ids=json.dumps)
def test_json_columns_have_what_the_converter_returns(values):
    converter = make_converter("value.converter", "json", {"schemas.enable": "false"})
    texts = [None if value is None else json.dumps(value).encode() for value in values]
    doubles = any(isinstance(n, float) for v in values if isinstance(v, dict) for n in v.values())
    numbers = [v["a"] for v in values if doubles and isinstance(v, dict) and "a" in v]
    columns = converter.to_arrow("t", pa.array(texts, pa.binary()))
    is_direct = all(isinstance(v, dict | None) for v in values) and any(values) and 2**53 + 1 not in numbers
    if columns is None:
        assert not is_direct
        return
    expected = [pair[1] for pair in converter.to_connect_many("t", texts)]
    names = [columns.type.field(i).name for i in range(columns.type.num_fields)]
    assert columns.to_pylist() == [
        None if row is None else {name: row.get(name) for name in names} for row in expected
    ]


@pytest.mark.parametrize(
    "text",
    [
        b'{"a":1}{"a":2}', b'{"a":NaN}', b'{"a":"\xff"}', b"", b" ", b"null", b"[1]", b"3", b'{"a":1,"a":2}',
        b'{"a":9223372036854775808}', b'{"a":01}', b'{"a":"}', b"{}",
    ],
)  # fmt: skip
def test_json_that_pyarrow_reads_otherwise_is_left_to_the_converter(text):
    converter = make_converter("value.converter", "json", {"schemas.enable": "false"})
    for texts in ([text], [text, b" "], [text, b'{"b":1}']):
        columns = converter.to_arrow("t", pa.array(texts, pa.binary()))
        assert columns is None or (text == b"{}" and columns.to_pylist() == [{"b": None}, {"b": 1}])


def test_dates_stay_texts_in_later_batches_too():
    converter = make_converter("value.converter", "json", {"schemas.enable": "false"})
    for text in ("2013-01-01", "noon", "2013-01-02"):
        (row,) = converter.to_arrow(
            "t", pa.array([json.dumps({"at": text}).encode()], pa.binary())
        ).to_pylist()
        assert row == {"at": text}
    (row,) = converter.to_arrow("t", pa.array([b'{"b":1}'], pa.binary())).to_pylist()
    assert row == {"b": 1}


class Collects(ColumnarSinkTask):
    def __init__(self):
        self.batches = []
        self.put_rows = []

    def put_columns(self, batches):
        self.batches += batches
        for batch in batches:
            self.put_rows += batch.record_batch().to_pylist()


class FakeConsumer:
    """Gives each response once, then waits."""

    def __init__(self, *responses):
        self.responses = list(responses)
        self.committed = {}

    async def subscribe(self, topics, *, on_assigned, on_revoked, on_lost):
        self.on_revoked = on_revoked
        await on_assigned({TP})

    def position(self, tp):
        return 0

    async def fetch(self, *, timeout_ms):
        import asyncio

        if self.responses:
            return [self.responses.pop(0)]
        await asyncio.sleep(0.001)
        return []

    async def confirm(self):
        """Return at once: the task is a member."""

    async def commit(self, offsets):
        self.committed.update(offsets)

    async def close(self):
        await self.on_revoked({TP})


async def run_task(harness, monkeypatch, fetched, *, upto, plugin=None, **config):
    consumer = FakeConsumer(fetched)
    monkeypatch.setattr("connect.runtime.sink_task.Consumer", lambda *_, **__: consumer)
    plugin = plugin or Collects()
    task = WorkerColumnarSinkTask(harness.setting(topics="t", **config), plugin)
    task.launch()
    await harness.until(lambda: consumer.committed.get(TP) == upto or task.status.state is State.FAILED)
    await task.stop()
    return plugin, task


async def test_the_plugin_gets_fields_and_the_records_own_columns(harness, monkeypatch):
    records = [(1000, b"k", b'{"a":1}', ()), (2000, None, b'{"b":"x"}', (("h", b"1"),))]
    plugin, task = await run_task(harness, monkeypatch, fetched_of(records), upto=2)
    own = {"__topic": "t", "__partition": 0}
    at = [datetime.datetime.fromtimestamp(s, datetime.UTC) for s in (1, 2)]
    assert plugin.put_rows == [
        {"a": 1, "b": None, **own, "__offset": 0, "__timestamp": at[0], "__key": "k", "__headers": []},
        {
            "a": None, "b": "x", **own, "__offset": 1, "__timestamp": at[1], "__key": None,
            "__headers": [{"name": "h", "value": plugin.put_rows[1]["__headers"][0]["value"]}],
        },
    ]  # fmt: skip
    assert task.delivered == 2


async def test_bytes_are_the_arrays_of_the_log(harness, monkeypatch):
    harness.worker["value.converter"] = "org.apache.kafka.connect.converters.ByteArrayConverter"
    del harness.worker["value.converter.schemas.enable"]
    plugin, _ = await run_task(harness, monkeypatch, fetched_of(records_of(b"\xff", None)), upto=2)
    assert plugin.batches[0].values.type == pa.binary()
    assert [row["value"] for row in plugin.put_rows] == [b"\xff", None]


async def test_one_bad_row_is_left_out_alone(harness, monkeypatch):
    fetched = fetched_of(records_of(b'{"a":1}', b"{", b'{"a":3}'))
    plugin, task = await run_task(harness, monkeypatch, fetched, upto=3, errors_tolerance="all")
    assert [(row["__offset"], row["a"]) for row in plugin.put_rows] == [(0, 1), (2, 3)]
    assert task.statistics() == {"records_delivered": 2, "records_skipped": 1}


async def test_a_bad_row_fails_the_task_without_tolerance(harness, monkeypatch):
    plugin, task = await run_task(harness, monkeypatch, fetched_of(records_of(b"{")), upto=1)
    assert task.status.state is State.FAILED
    assert "offset 0" in task.status.trace
    assert plugin.put_rows == []


class ReportsOdds(Collects):
    """Reports odd rows of the later part of each batch."""

    def put_columns(self, batches):
        reporter = self.context.errant_record_reporter()
        for batch in batches:
            later = batch.slice(1, len(batch))
            for index, value in enumerate(later.record_batch().to_pylist()):
                if value["a"] % 2:
                    reporter.report(later.record(index), ValueError("odd"))


@pytest.mark.parametrize("more", [{}, transforms(Route)], ids=["columns", "transforms"])
async def test_rows_are_reported_as_they_are_in_the_log(harness, monkeypatch, fake_producer, more):
    monkeypatch.setattr("connect.runtime.errors.dead_letters.BatchProducer", fake_producer)
    headers = (("h", b"1"),)
    records = [(n, b"k", b'{"a": %d}' % n, headers) for n in (2, 4, 5, 6)]
    _, task = await run_task(
        harness, monkeypatch, fetched_of(records), upto=4, plugin=ReportsOdds(), **DEAD, **more
    )
    (letter,) = letters(harness.client.producers[0])
    assert (letter.key, letter.value) == (b"k", b'{"a": 5}')
    assert [letter.context[name] for name in ("topic", "partition", "offset")] == [b"t", b"0", b"2"]
    assert letter.context["exception.message"] == b"odd"
    assert task.metrics.records_skipped == 1


async def test_transforms_apply(harness, monkeypatch):
    config = {
        "transforms": "h",
        "transforms.h.type": "org.apache.kafka.connect.transforms.HoistField$Value",
        "transforms.h.field": "in",
    }
    fetched = fetched_of(records_of(b'{"a":1}'))
    plugin, _ = await run_task(harness, monkeypatch, fetched, upto=1, **config)
    assert plugin.put_rows[0]["in"] == {"a": 1}


async def test_a_put_is_bounded(harness, monkeypatch):
    fetched = fetched_of(records_of(*[b'{"a":1}'] * 25))
    config = {"consumer.override.max.poll.records": "10"}
    plugin, _ = await run_task(harness, monkeypatch, fetched, upto=25, **config)
    assert [len(batch) for batch in plugin.batches] == [10, 10, 5]


def test_no_records_are_no_columns():
    assert column_batches([]) == []
