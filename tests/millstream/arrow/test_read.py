"""`millstream.read`: bounds, types, transactions, laziness, and the errors of each."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

pytest.importorskip("pyarrow")
import pyarrow as pa

from kafka_client import Client, TopicPartition, TransactionalProducer
from kafka_client.errors import ConfigError, KafkaError
from millstream import read
from millstream.arrow.bounds import Bound
from millstream.data_types.data_type import WrongData
from millstream.testing import Broker
from plugins.spark import arrow
from plugins.spark.data_loss import RecordsPurged

DAY = 86_400_000
NAMES = ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(in_process=True) as broker:
        broker.topic("days", partitions=2)
        for day in range(4):
            for partition in range(2):
                broker.produce("days", [("k", f"{partition}{day}")], partition=partition, timestamp=day * DAY)
        yield broker


def values(broker: Broker, topic: str, **arguments: Any) -> list[object]:
    column: list[object] = read(topic, broker.bootstrap_servers, **arguments).read_all()["value"].to_pylist()
    return column


def test_the_columns_are_those_of_spark_s_source(broker: Broker) -> None:
    broker.produce("columns", [("k", "v")], headers={"h": "1"}, timestamp=DAY)
    table = read("columns", broker.bootstrap_servers, headers=True).read_all()
    assert table.schema == arrow.record_schema(True)
    assert table.to_pylist() == [
        {
            "key": b"k",
            "value": b"v",
            "topic": "columns",
            "partition": 0,
            "offset": 0,
            "timestamp": datetime(1970, 1, 2, tzinfo=UTC),
            "timestampType": 0,
            "headers": [{"key": "h", "value": b"1"}],
        }
    ]


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ("earliest", "latest", "00 01 02 03 10 11 12 13"),
        (2, "latest", "02 03 12 13"),
        (1, 3, "01 02 11 12"),
        ({TopicPartition("days", 1): 3}, "latest", "00 01 02 03 13"),
        ("earliest", {("days", 0): 0, ("days", 1): 1}, "10"),
        (datetime(1970, 1, 3, tzinfo=UTC), "latest", "02 03 12 13"),
        ("1970-01-02T00:00:00.001Z", "1970-01-04T00:00:00Z", "02 12"),
        ("1999-01-01", "latest", ""),
        ("latest", "latest", ""),
        (3, 2, ""),
        (9, 99, ""),
    ],
)
def test_bounds(broker: Broker, start: Bound, end: Bound, expected: str) -> None:
    assert values(broker, "days", value="string", start=start, end=end) == expected.split()


def test_several_topics_come_one_after_the_other(broker: Broker) -> None:
    broker.produce("second", ["x"])
    table = read(["second", "days"], broker.bootstrap_servers, start=3).read_all()
    assert table["topic"].to_pylist() == ["days", "days"]
    table = read(["second", "days"], broker.bootstrap_servers, end=1, value="string").read_all()
    assert table["value"].to_pylist() == ["00", "10", "x"]


@pytest.mark.parametrize(
    ("name", "data", "decoded", "type_name"),
    [
        ("bytes", b"\xff", b"\xff", "binary"),
        ("string", "é".encode(), "é", "string"),
        ("short", b"\xff\xfe", -2, "int16"),
        ("int", b"\0\0\1\0", 256, "int32"),
        ("long", b"\0" * 7 + b"\1", 1, "int64"),
        ("float", b"\x3f\xc0\0\0", 1.5, "float"),
        ("double", b"\x3f\xf8" + b"\0" * 6, 1.5, "double"),
        ("hex", b"\xff", "ff", "string"),
        ("base64", b"\xff", "/w==", "string"),
        ("json", b'{"a": [1.5, null]}', {"a": [1.5, None]}, "struct<a: list<item: double>>"),
    ],
)
def test_types_of_keys_and_values(
    broker: Broker, name: str, data: bytes, decoded: object, type_name: str
) -> None:
    topic = broker.topic(f"typed-{name}")
    broker.produce(topic, [(data, data)])
    send(broker, topic, None)
    table = read(topic, broker.bootstrap_servers, key=name, value=name).read_all()
    for column in ("key", "value"):
        assert table[column].to_pylist() == [decoded, None]
        assert str(table.schema.field(column).type) == type_name


def test_json_of_a_type_that_is_named(broker: Broker) -> None:
    broker.produce("named", ['{"at": "2013-01-01T05:00:00Z", "n": 1, "other": 1}', "{}"])
    columns = pa.struct([("n", pa.float64()), ("at", pa.timestamp("us", "UTC"))])
    rows = values(broker, "named", value="json", value_arrow_type=columns)
    assert rows == [{"n": 1.0, "at": datetime(2013, 1, 1, 5, tzinfo=UTC)}, {"n": None, "at": None}]


@pytest.mark.parametrize(
    ("later", "message"),
    [
        ('{"n": 2, "m": {"x": 1, "y": 1}}', r"m\.y is a new field"),
        ('{"n": 1.5}', "1.50* was truncated"),
        ('{"n": "text"}', "Could not convert 'text'"),
        ('{"m": {"x": {}}}', "m.x is struct<>, not int64"),
        ("1", "cannot mix struct"),
        ("{", "not JSON"),
    ],
)
def test_json_that_does_not_fit_the_first_batch_is_an_error(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, later: str, message: str
) -> None:
    monkeypatch.setattr(arrow, "ROWS", 2)
    topic = broker.topic(f"fields-{later.encode().hex()}")
    broker.produce(topic, ['{"n": 1, "m": {"x": 1}}', '{"n": 2}'])
    broker.produce(topic, ['{"n": 3}', later])
    reader = read(topic, broker.bootstrap_servers, value="json")
    assert reader.read_next_batch().num_rows == 2
    with pytest.raises(WrongData, match=message) as caught:
        reader.read_next_batch()
    assert f"{topic}-0 at offset" in str(caught.value)


def test_fields_may_be_missing_and_whole_numbers_go_where_fractions_were(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow, "ROWS", 1)
    broker.produce("lacking", ['{"n": 1.5, "l": [{"x": true}]}', '{"n": 2}', '{"l": [{}]}', '{"n": "2"}'])
    reader = read("lacking", broker.bootstrap_servers, value="json")
    rows = [reader.read_next_batch().to_pylist()[0]["value"] for _ in range(3)]
    assert rows == [{"n": 1.5, "l": [{"x": True}]}, {"n": 2.0, "l": None}, {"n": None, "l": [{"x": None}]}]
    with pytest.raises(WrongData, match="n is string, not double"):
        reader.read_next_batch()


@pytest.mark.parametrize(("name", "message"), [("string", "not UTF-8"), ("int", "which has 4")])
def test_a_record_of_another_type_is_named(broker: Broker, name: str, message: str) -> None:
    topic = broker.topic(f"wrong-{name}")
    broker.produce(topic, [b"\0\0\0\1", b"\xff"])
    with pytest.raises(WrongData, match=f"{topic}-0 at offset 1: the value.*{message}.*bytes takes anything"):
        values(broker, topic, value=name)


def test_aborted_and_open_transactions_are_not_read_with_read_committed(broker: Broker) -> None:
    broker.topic("sales")

    async def main() -> tuple[list[object], list[object]]:
        async with Client(broker.bootstrap_servers) as client, TransactionalProducer(client, "t") as producer:
            for value, ends in ((b"aborted", producer.abort), (b"committed", producer.commit)):
                producer.begin()
                await producer.send("sales", 0, [(0, None, value, ())])
                await producer.flush()
                await ends()
            producer.begin()
            await producer.send("sales", 0, [(0, None, b"open", ())])
            await producer.flush()
            # Read where an event loop runs, as in a notebook.
            committed = values(broker, "sales", isolation_level="read_committed")
            everything = values(broker, "sales")
            await producer.abort()
            return committed, everything

    committed, everything = asyncio.run(main())
    assert committed == [b"committed"]
    assert everything == [b"aborted", b"committed", b"open"]


def test_batches_are_read_when_they_are_asked_for(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow, "ROWS", 100)
    broker.topic("lazy")
    for _ in range(10):
        broker.produce("lazy", [b"x" * 1000] * 100)
    config = {"max.partition.fetch.bytes": "100000", "fetch.max.bytes": "100000"}
    before = pa.total_allocated_bytes()
    reader = read("lazy", broker.bootstrap_servers, config=config)
    broker.produce("lazy", ["later"])
    sizes = []
    for batch in reader:
        sizes.append(batch.num_rows)
        assert pa.total_allocated_bytes() - before < 400_000, "three batches"
    assert sizes == [100] * 10


def test_a_reader_that_is_left_ends_its_thread(broker: Broker) -> None:
    reader = read("days", broker.bootstrap_servers)
    reader.read_next_batch()
    del reader
    for thread in threading.enumerate():
        if thread.name.startswith("millstream-read"):
            thread.join(60)
            assert not thread.is_alive()


def test_records_that_vanish_while_they_are_read(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    broker.topic("purged", partitions=2)
    for partition in range(2):
        broker.produce("purged", ["a", "b"], partition=partition)
    for fail in (True, False):
        reader = read("purged", broker.bootstrap_servers, value="string", fail_on_data_loss=fail)
        assert reader.read_next_batch()["value"].to_pylist() == ["a", "b"]
        purge(broker, TopicPartition("purged", 1), 1 if fail else 2)
        if fail:
            with pytest.raises(RecordsPurged, match="purged-1"):
                reader.read_next_batch()
        else:
            with pytest.raises(StopIteration):
                reader.read_next_batch()


def test_arguments_that_are_refused(broker: Broker) -> None:
    for arguments, message in (
        ({"start": "yesterday"}, "start=yesterday: earliest, latest, an offset"),
        ({"end": -1}, "end=-1: offsets are 0 or greater"),
        ({"start": {("days", 2): 0}}, "start=days-2: no such partition"),
        ({"value": "text"}, "value=text: one of string, int"),
        ({"isolation_level": "committed"}, "isolation.level"),
        ({"config": {"fetch.max.byte": "1"}}, "fetch.max.bytes"),
    ):
        with pytest.raises(ConfigError) as caught:
            values(broker, "days", **arguments)
        assert message in str(caught.value)
    with pytest.raises(KafkaError, match="nowhere"):
        values(broker, "nowhere")


def test_an_import_of_millstream_is_light_and_without_pyarrow_the_extra_is_named() -> None:
    program = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "import millstream\n"
        "assert not {'asyncio', 'kafka_client', 'plugins'} & sys.modules.keys(), sys.modules.keys()\n"
        "try: millstream.read('t', 'localhost:1')\n"
        "except ImportError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8")
    assert done.stdout == "millstream.read needs pyarrow: pip install 'millstream[arrow]'\n", done.stderr


def send(broker: Broker, topic: str, value: bytes | None) -> None:
    async def main() -> None:
        from kafka_client import Producer

        async with Client(broker.bootstrap_servers) as client, Producer(client) as producer:
            await producer.send_and_wait(topic, value, partition=0)

    asyncio.run(main())


def purge(broker: Broker, tp: TopicPartition, before: int) -> None:
    async def main() -> None:
        from kafka_client import Admin

        async with Client(broker.bootstrap_servers) as client:
            await Admin(client).delete_records({tp: before})

    asyncio.run(main())
