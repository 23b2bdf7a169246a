"""`format("millstream")` in a real Spark: the Kafka source's columns, offsets and failures."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from plugins.spark.driver import SparkDriver
from plugins.spark.environment import java_found
from plugins.spark.errors import JobFailed
from tests.plugins.spark.log import Log
from tests.support.depth import deep

pytestmark = [
    pytest.mark.skipif(not java_found(), reason="Spark needs Java: none on the path, no JAVA_HOME"),
    pytest.mark.timeout(300),
]
NewName = Callable[[], str]
DAY = 86_400_000


def view(driver: SparkDriver, log: Log, name: str, **options: str) -> str:
    properties = {"kafka.bootstrap.servers": log.bootstrap, "subscribe": name, **options}
    listed = ", ".join(f"'{key}' '{value}'" for key, value in properties.items())
    driver.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} USING millstream OPTIONS ({listed})")
    return name


def test_records_come_with_the_kafka_sources_columns(
    driver: SparkDriver, log: Log, new_name: NewName
) -> None:
    topic = new_name()
    log.create(topic, 2)
    log.produce(topic, 0, [(DAY, b"k", b"v", (("h", b"1"), ("n", None))), (DAY + 1, None, None, ())])
    log.produce(topic, 1, [(2 * DAY, b"", b"w", ())])
    view(driver, log, topic, includeHeaders="true")
    described = {row["col_name"]: row["data_type"] for row in driver.sql(f"DESCRIBE {topic}")}
    assert described == {
        "key": "binary",
        "value": "binary",
        "topic": "string",
        "partition": "int",
        "offset": "bigint",
        "timestamp": "timestamp",
        "timestampType": "int",
        "headers": "array<struct<key:string,value:binary>>",
    }
    rows = driver.sql(f"SELECT * FROM {topic} ORDER BY partition, offset")
    assert [tuple(row.values()) for row in rows] == [
        (
            "k",
            "v",
            topic,
            0,
            0,
            "1970-01-02 00:00:00",
            0,
            [{"key": "h", "value": "1"}, {"key": "n", "value": None}],
        ),
        (None, None, topic, 0, 1, "1970-01-02 00:00:00.001000", 0, None),
        ("", "w", topic, 1, 0, "1970-01-03 00:00:00", 0, None),
    ]


@deep
def test_offsets_choose_what_is_read(driver: SparkDriver, log: Log, new_name: NewName) -> None:
    topic = new_name()
    log.create(topic)
    log.produce(topic, 0, [(i, None, b"%d" % i, ()) for i in range(25_000)])
    log.produce(topic, 0, [(i, None, b"%d" % i, ()) for i in range(25_000, 30_000)])

    def read(**options: str) -> tuple[int, int, int]:
        view(driver, log, topic, **options)
        (row,) = driver.sql(f"SELECT count(*) AS n, min(offset) AS low, max(offset) AS high FROM {topic}")
        return row["n"], row["low"], row["high"]

    assert read() == (30_000, 0, 29_999)
    assert read(minPartitions="3") == (30_000, 0, 29_999)
    bounds = {
        "startingOffsets": f'{{"{topic}": {{"0": 7}}}}',
        "endingOffsets": f'{{"{topic}": {{"0": 25003}}}}',
    }
    assert read(**bounds) == (24_996, 7, 25_002)
    assert read(startingTimestamp="20000", endingTimestamp="20010") == (10, 20_000, 20_009)
    assert read(startingTimestamp="20000", maxRecordsPerPartition="999") == (10_000, 20_000, 29_999)


@deep
def test_a_topic_without_records_is_no_rows(driver: SparkDriver, log: Log, new_name: NewName) -> None:
    topic = new_name()
    log.create(topic, 3)
    view(driver, log, topic)
    assert driver.sql(f"SELECT count(*) AS n FROM {topic}") == [{"n": 0}]


@deep
def test_offsets_that_are_gone_fail_the_query_unless_told_otherwise(
    driver: SparkDriver, log: Log, new_name: NewName
) -> None:
    topic = new_name()
    log.create(topic)
    log.produce(topic, 0, [(0, None, b"a", ())], [(0, None, b"b", ())], [(0, None, b"c", ())])
    log.delete_records(topic, 2)
    start = {"startingOffsets": f'{{"{topic}": {{"0": 1}}}}'}
    view(driver, log, topic, **start)
    with pytest.raises(JobFailed, match="offset 1 is wanted, the log has 2") as failed:
        driver.sql(f"SELECT * FROM {topic}")
    assert "Traceback" not in str(failed.value)
    view(driver, log, topic, **start, failOnDataLoss="false")
    assert driver.sql(f"SELECT offset FROM {topic}") == [{"offset": 2}]


@deep
def test_a_topic_that_does_not_exist_is_named(driver: SparkDriver, log: Log, new_name: NewName) -> None:
    topic = new_name()
    view(driver, log, topic)
    with pytest.raises(JobFailed, match=topic):
        driver.sql(f"SELECT * FROM {topic}")
