"""The batch writer without Spark: columns, options, and the rows of a task in the log."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kafka_client import partition_for_key
from kafka_client.errors import ConfigError, KafkaError
from plugins.spark.arrow import read_arrow
from plugins.spark.errors import InvalidRow, UnsupportedColumns
from plugins.spark.options import parse_options
from plugins.spark.ranges import resolve_ranges
from plugins.spark.row_records import rows_by_topic
from plugins.spark.source import MillstreamDataSource
from plugins.spark.worker_connections import CONNECTIONS
from plugins.spark.write_options import parse_write_options
from plugins.spark.write_schema import HEADERS, check_schema
from plugins.spark.writer import write_rows
from tests.plugins.spark.log import Log
from tests.support.logd_process import LogdProcess

SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}
ARROW_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
TEXT, BYTES, INT, LONG = StringType(), BinaryType(), IntegerType(), LongType()
Columns = dict[str, DataType]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Log]:
    with LogdProcess(tmp_path_factory.mktemp("writer-logd")) as logd:
        yield Log(logd.bootstrap)


def struct(columns: Columns) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


def records(log: Log, topic: str) -> list[dict[str, Any]]:
    """Return the topic's records by partition and offset, as the data source reads them."""
    options = parse_options(
        {"kafka.bootstrap.servers": log.bootstrap, "subscribe": topic, "includeHeaders": "true"}
    )
    ranges = sorted(asyncio.run(resolve_ranges(options)))
    return [row for each in ranges for batch in read_arrow(options, each) for row in batch.to_pylist()]


def write(log: Log, *batches: pa.RecordBatch, **options: str) -> int:
    all_options = {"kafka.bootstrap.servers": log.bootstrap, **options}
    return write_rows(parse_write_options(all_options), iter(batches))


@pytest.mark.parametrize(
    ("columns", "topic", "message"),
    [
        ({"value": TEXT}, None, "topic option required when no 'topic' attribute is present"),
        ({"key": TEXT}, "t", "Required attribute 'value' not found"),
        ({"Value": TEXT}, "t", "Required attribute 'value' not found"),
        ({"value": INT}, "t", "value attribute unsupported type int. value must be a(n) string or binary"),
        (
            {"key": LONG, "value": TEXT},
            "t",
            "key attribute unsupported type bigint. key must be a(n) string or binary",
        ),
        (
            {"topic": BYTES, "value": TEXT},
            None,
            "topic attribute unsupported type binary. topic must be a(n) string",
        ),
        (
            {"value": TEXT, "partition": LONG},
            "t",
            "partition attribute unsupported type bigint. partition must be a(n) int",
        ),
        (
            {"value": TEXT, "timestamp": LONG},
            "t",
            "timestamp attribute unsupported type bigint. timestamp must be a(n) double or timestamp",
        ),
        (
            {"value": TEXT, "headers": ArrayType(TEXT)},
            "t",
            "headers attribute unsupported type array<string>. "
            "headers must be a(n) array<struct<key:string,value:binary>>",
        ),
    ],
)
def test_columns_are_refused_in_the_words_of_spark_s_kafka_sink(
    columns: Columns, topic: str | None, message: str
) -> None:
    with pytest.raises(UnsupportedColumns) as caught:
        check_schema(struct(columns), topic)
    assert message in str(caught.value)


def test_columns_that_a_record_has() -> None:
    times: list[DataType] = [DoubleType(), TimestampType()]
    for timestamp in times:
        columns = {"topic": TEXT, "key": BYTES, "value": TEXT, "headers": HEADERS, "partition": INT}
        check_schema(struct({**columns, "timestamp": timestamp, "offset": LONG}), None)
    check_schema(struct({"value": BYTES, "topic": LONG}), "the option goes before the column")


def test_options_of_a_write() -> None:
    options = parse_write_options(
        {**SERVERS, "TOPIC": " flights ", "includeheaders": "true", "kafka.compression.type": "lz4"}
    )
    assert (options.topic, options.producer) == ("flights", {"compression_type": "lz4"})
    assert options.client == {"client_id": "millstream-spark", "allow_auto_topic_creation": True}


@pytest.mark.parametrize(
    ("changes", "key", "message"),
    [
        ({"kafka.bootstrap.servers": ""}, "kafka.bootstrap.servers", "is required"),
        ({"kafka.acks": "2"}, "kafka.acks", "all, -1, 0 or 1"),
        ({"kafka.key.serializer": "x"}, "kafka.key.serializer", "keys are bytes or text"),
        ({"tpic": "t"}, "tpic", "topic?"),
        ({"linger.ms": "5"}, "linger.ms", "kafka.linger.ms?"),
        ({"subscribe": "t"}, "subscribe", "is not an option of the sink"),
        ({"kafka.security.protocol": "SASL"}, "kafka.security.protocol", "SASL"),
    ],
)
def test_a_bad_option_of_a_write_is_named(changes: dict[str, str], key: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message.replace("?", r"\?")) as caught:
        parse_write_options({**SERVERS, **changes})
    assert caught.value.key == key


def test_overwriting_a_topic_is_refused() -> None:
    source = MillstreamDataSource({**SERVERS, "topic": "t"})
    with pytest.raises(ConfigError, match=r'use mode\("append"\)'):
        source.writer(struct({"value": TEXT}), overwrite=True)
    with pytest.raises(UnsupportedColumns):
        source.writer(struct({"key": TEXT}), overwrite=False)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"topic": pa.array([None], pa.string())}, "null topic present in the data"),
        ({"partition": pa.array([-1], pa.int32())}, "Invalid partition: -1"),
        ({"timestamp": pa.array([-0.001])}, "Invalid timestamp: -1"),
        ({"headers": pa.array([[{"key": None, "value": b""}]], ARROW_HEADERS)}, "Null header keys"),
    ],
)
def test_rows_that_are_no_records(columns: dict[str, pa.Array], message: str) -> None:
    batch = pa.record_batch({"value": pa.array(["v"]), **columns})
    with pytest.raises(InvalidRow, match=message):
        rows_by_topic(batch, None if "topic" in columns else "t")


def test_every_column_reaches_the_log(log: Log) -> None:
    log.create("written", 3)
    batch = pa.record_batch(
        {
            "topic": pa.array(["written"] * 3),
            "key": pa.array(["ann", None, "é"], pa.large_string()),
            "value": pa.array([b"1", b"", None], pa.binary()),
            "headers": pa.array([[{"key": "h", "value": b"1"}, {"key": "n", "value": None}], [], None]),
            "partition": pa.array([2, 2, None], pa.int32()),
            "timestamp": pa.array([1_500_999, 2_000_000, 3_000_000], pa.timestamp("us", "UTC")),
        }
    )
    assert write(log, batch) == 3
    rows = [
        tuple(row[name] for name in ("key", "value", "partition", "offset", "headers"))
        for row in records(log, "written")
    ]
    keyed = partition_for_key("é".encode(), 3)
    explicit = [
        (b"ann", b"1", 2, 0, [{"key": "h", "value": b"1"}, {"key": "n", "value": None}]),
        (None, b"", 2, 1, None),
    ]
    assert keyed != 2
    assert rows == [("é".encode(), None, keyed, 0, None), *explicit]
    times = {row["timestamp"].timestamp() for row in records(log, "written")}
    assert times == {1.5, 2.0, 3.0}


def test_keys_choose_partitions_and_keep_their_order(log: Log) -> None:
    log.create("keyed", 4)
    keys = [f"k{i % 50}" for i in range(5000)]
    batch = pa.record_batch({"key": keys, "value": [str(i) for i in range(5000)]})
    assert write(log, batch, batch.slice(0, 10), topic="keyed") == 5010
    by_key: dict[str, list[int]] = {}
    for row in records(log, "keyed"):
        key = row["key"].decode()
        assert row["partition"] == partition_for_key(row["key"], 4)
        by_key.setdefault(key, []).append(int(row["value"]))
    assert {key: numbers[:100] for key, numbers in by_key.items()} == {
        f"k{i}": list(range(i, 5000, 50)) for i in range(50)
    }


def test_seconds_are_a_timestamp_and_a_row_without_one_is_written_now(log: Log) -> None:
    log.create("seconds")
    write(log, pa.record_batch({"value": ["a", "b"], "timestamp": [1.25, None]}), topic="seconds")
    first, second = [row["timestamp"].timestamp() for row in records(log, "seconds")]
    assert first == 1.25
    assert second > 1_600_000_000


def test_refused_rows_fail_the_task_and_its_connection_is_not_used_again(log: Log) -> None:
    log.create("small")
    fine = pa.record_batch({"value": ["x"], "partition": pa.array([0], pa.int32())})
    write(log, fine, topic="small")
    idle = CONNECTIONS.idle_count
    with pytest.raises(KafkaError, match="max_request_size is 100"):
        write(
            log,
            pa.record_batch({"value": ["y" * 1000]}),
            topic="small",
            **{"kafka.max.request.size": "100"},
        )
    assert CONNECTIONS.idle_count == idle - 1
    missing = pa.record_batch({"value": ["z"], "partition": pa.array([7], pa.int32())})
    with pytest.raises(KafkaError, match="small-7"):
        write(log, missing, topic="small")
    assert [row["value"] for row in records(log, "small")] == [b"x"]
