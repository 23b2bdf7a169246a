"""A running sink task of JSON texts: what texts come of the log, and bad rows."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.api import JsonSinkTask, SinkRecord
from connect.converters import make_converter
from connect.errors import DataError
from connect.runtime import State
from connect.runtime.json_records import json_batches, json_texts
from connect.runtime.sink_task import WorkerSinkTask
from kafka_client import Fetched, TopicPartition
from kafka_client.records import assign_offset, build_batch
from kafka_client.wire import NO_UUID

TP = TopicPartition("t", 0)


def fetched_of(*records):
    """Return a batch of (timestamp, key, value, headers) as a broker sends it."""
    data = bytearray(build_batch(list(records)))
    assign_offset(data, 0, 0)
    return Fetched(TP, 0, len(records), memoryview(bytes(data)), topic_id=NO_UUID)


def values_of(*values):
    return fetched_of(*((n, b"k", value, ()) for n, value in enumerate(values)))


class Collects(JsonSinkTask):
    def __init__(self):
        self.batches = []

    def put_json(self, batches):
        self.batches += batches

    @property
    def rows(self):
        return [row for b in self.batches for row in zip(b.offsets, b.keys, b.values, strict=True)]


class FakeConsumer:
    """Gives one response, then none."""

    def __init__(self, response):
        self.responses = [response]
        self.committed = {}

    async def subscribe(self, topics, *, on_assigned, on_revoked, on_lost):
        self.on_revoked = on_revoked
        await on_assigned({TP})

    def position(self, tp):
        return 0

    async def fetch(self, *, timeout_ms):
        import asyncio

        if self.responses:
            return [self.responses.pop()]
        await asyncio.sleep(0.001)
        return []

    async def confirm(self):
        """Return at once: the task is a member."""

    async def commit(self, offsets):
        self.committed.update(offsets)

    async def close(self):
        await self.on_revoked({TP})


async def run_task(harness, monkeypatch, fetched, **config):
    consumer = FakeConsumer(fetched)
    monkeypatch.setattr("connect.runtime.sink_task.Consumer", lambda *_, **__: consumer)
    plugin = Collects()
    task = WorkerSinkTask(harness.setting(topics="t", **config), plugin)
    task.launch()
    end = fetched.next_offset
    await harness.until(lambda: consumer.committed.get(TP) == end or task.status.state is State.FAILED)
    await task.stop()
    return plugin, task


async def test_texts_pass_through_as_they_are(harness, monkeypatch):
    """Keep spaces, digits and escapes of the log: `1.50` is not written as `1.5`."""
    texts = [b'{"a": 1.50, "b":"\\u00e9"}', None, b"null", b' {"n":12345678901234567890} ', b"7"]
    plugin, task = await run_task(harness, monkeypatch, values_of(*texts))
    (batch,) = plugin.batches
    assert batch.values == [texts[0], None, None, texts[3], b"7"]
    assert (batch.topic, batch.source, list(batch.offsets)) == ("t", TP, [0, 1, 2, 3, 4])
    assert list(batch.timestamps) == [0, 1, 2, 3, 4]
    assert batch.keys == [b'"k"'] * 5 and batch.headers is None
    assert task.delivered == 5


async def test_line_ends_inside_a_text_are_removed(harness, monkeypatch):
    plugin, _ = await run_task(harness, monkeypatch, values_of(b'{"a":\n1}', b'{"a": 2}', b""))
    assert plugin.batches[0].values == [b'{"a":1}', b'{"a":2}', None]


async def test_headers_are_those_of_each_record(harness, monkeypatch):
    records = [(0, None, b"1", (("h", b"5"),)), (0, None, b"2", ())]
    plugin, _ = await run_task(harness, monkeypatch, fetched_of(*records))
    (first, second) = plugin.batches[0].headers
    assert [header[0] for header in first] == ["h"] and second == ()


@pytest.mark.parametrize("bad", [b"{", b'"\xff"', b'{"a":1}{"a":2}', b"1 2", b'{"a":'])
async def test_one_bad_row_is_left_out_alone(harness, monkeypatch, bad):
    fetched = values_of(b'{"a": 1}', bad, b"3")
    plugin, task = await run_task(harness, monkeypatch, fetched, errors_tolerance="all")
    assert plugin.rows == [(0, b'"k"', b'{"a":1}'), (2, b'"k"', b"3")]
    assert task.statistics() == {"records_delivered": 2, "records_skipped": 1}


async def test_a_bad_row_fails_the_task_with_its_offset(harness, monkeypatch):
    plugin, task = await run_task(harness, monkeypatch, values_of(b"1", b"{"))
    assert task.status.state is State.FAILED
    assert "offset 1" in task.status.trace
    assert plugin.batches == []


async def test_a_value_that_two_records_make_together_is_refused(harness, monkeypatch):
    fetched = values_of(b'{"a":', b"1}")
    plugin, task = await run_task(harness, monkeypatch, fetched, errors_tolerance="all")
    assert plugin.rows == []
    assert task.statistics()["records_skipped"] == 2


async def test_transforms_apply(harness, monkeypatch):
    config = {
        "transforms": "h",
        "transforms.h.type": "org.apache.kafka.connect.transforms.HoistField$Value",
        "transforms.h.field": "in",
    }
    plugin, _ = await run_task(harness, monkeypatch, values_of(b'{"a": 1}'), **config)
    assert plugin.rows == [(0, b'"k"', b'{"in":{"a":1}}')]


PIECES = [b"{", b"}", b'{"a":1}', b"[1", b",2]", b"1", b"", b" ", b'"x', b"null", b"\n"]


@given(st.lists(st.sampled_from(PIECES)))
def test_texts_agree_with_the_converters_values(texts):
    converter = make_converter("value.converter", "json", {"schemas.enable": "false"})
    passed = converter.to_json("t", texts)
    try:
        expected = [value for _, value in converter.to_connect_many("t", texts)]
    except DataError:
        assert passed is None
        return
    if passed is not None:
        assert [None if text is None else json.loads(text) for text in passed] == expected
        assert not any(b"\n" in text for text in passed if text is not None)


def test_texts_of_values():
    assert json_texts(["a\n", None, {"b": [1]}, b"x"]) == [b'"a\\n"', None, b'{"b":[1]}', b'"eA=="']
    assert json_texts([]) == [] and json_texts([None]) == [None]
    assert msgspec.json.decode(json_texts([1.5])[0]) == 1.5


def test_batches_of_records_follow_topics_and_partitions():
    records = [SinkRecord("t", 0, 1, value=1), SinkRecord("t", 0, 2, value=2), SinkRecord("u", 0, 3)]
    assert [(b.topic, list(b.offsets), b.values) for b in json_batches(records)] == [
        ("t", [1, 2], [b"1", b"2"]),
        ("u", [3], [None]),
    ]
    with pytest.raises(DataError, match="t-0, offsets 4 to 4"):
        json_batches([SinkRecord("t", 0, 4, value=object())])
