"""The sink's coordinator against a real log and a real Spark; what dies is in `test_kills.py`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from connect.api import ConfigError
from plugins.spark.driver import SparkDriver
from plugins.spark.environment import java_found
from plugins.spark.errors import DataLost, Fenced, JobFailed, PartitionGone, TopicRecreated
from plugins.spark.table import ParquetTable
from tests.plugins.spark.log import Log
from tests.plugins.spark.sink_task import SCHEMA, counts, delays, start_task
from tests.support.depth import deep

pytestmark = [
    pytest.mark.skipif(not java_found(), reason="Spark needs Java: none on the path, no JAVA_HOME"),
    pytest.mark.timeout(300),
]
NewName = Callable[[], str]


@deep
def test_records_become_rows_of_a_partitioned_table(
    driver: SparkDriver, log: Log, new_name: NewName, tmp_path: Path
) -> None:
    topic, path = new_name(), tmp_path / "a table [1]"
    log.create(topic, 2)
    log.produce(topic, 0, delays(0, 12))
    log.produce(
        topic, 1, [(0, b"gone", None, ()), (0, b"bad", b"{no json", ()), (1, None, b'{"more": 1}', ())]
    )
    by_month = {"partition.by": "month=date_format(timestamp,'yyyy-MM'); topic; partition"}
    task = start_task(log, topic, path, **SCHEMA, **by_month)
    try:
        assert task.run_once(log.ends(topic)) == {(topic, 0): 12, (topic, 1): 3}
        before = ParquetTable(path).latest()
        assert task.run_once(log.ends(topic)) == {(topic, 0): 12, (topic, 1): 3}
        assert ParquetTable(path).latest() == before
        log.produce(topic, 0, delays(12, 3))
        assert task.run_once(log.ends(topic)) == {(topic, 0): 15, (topic, 1): 3}
    finally:
        task.stop()
    tables = {"t": str(path)}
    assert counts(driver, path) == {"n": 18, "offsets": 18}
    assert driver.sql("SELECT * FROM t WHERE offset = 5 AND partition = 0", tables) == [
        {
            "key": "A2",
            "topic": topic,
            "partition": 0,
            "offset": 5,
            "timestamp": "1970-06-05 00:00:00",
            "carrier": "A2",
            "delay": 2.5,
            "month": "1970-06",
        }
    ]
    odd = driver.sql("SELECT key, carrier, delay FROM t WHERE partition = 1 ORDER BY offset", tables)
    assert [tuple(row.values()) for row in odd] == [
        ("gone", None, None),
        ("bad", None, None),
        (None, None, None),
    ]
    latest = driver.sql("SELECT carrier, delay FROM t_latest WHERE partition = 0 ORDER BY carrier", tables)
    assert [tuple(row.values()) for row in latest] == [("A0", 6.0), ("A1", 6.5), ("A2", 7.0)]
    folders = f"month=1970-06/topic={topic}/partition=0"
    assert any(folders in file.path for file in ParquetTable(path).files())
    with pytest.raises(ConfigError, match="named by month, topic, partition"):
        start_task(log, topic, path, **SCHEMA, **{"partition.by": "topic"})


def test_a_writer_that_was_taken_over_stops(
    driver: SparkDriver, log: Log, new_name: NewName, tmp_path: Path
) -> None:
    topic = new_name()
    log.create(topic)
    old, new = start_task(log, topic, tmp_path), start_task(log, topic, tmp_path)
    try:
        with pytest.raises(Fenced):
            old.run_once(log.ends(topic))
        assert new.run_once(log.ends(topic)) == {(topic, 0): 0}
    finally:
        old.stop()
        new.stop()


@deep
def test_a_schema_is_inferred_once_and_kept(
    driver: SparkDriver, log: Log, new_name: NewName, tmp_path: Path
) -> None:
    topic = new_name()
    log.create(topic)
    log.produce(topic, 0, [(0, None, None, ()), (0, None, b'{"n": 1, "nested": {"s": "x"}}', ())])
    log.produce(topic, 0, [(0, None, b"no json", ())])
    task = start_task(log, topic, tmp_path)
    try:
        task.run_once(log.ends(topic))
        log.produce(topic, 0, [(0, None, b'{"n": 2, "later": true}', ())])
        task.run_once(log.ends(topic))
    finally:
        task.stop()
    task = start_task(log, topic, tmp_path, value_schema="n STRING")
    try:
        log.produce(topic, 0, [(0, None, b'{"n": "text"}', ())])
        with pytest.raises(JobFailed, match="n was bigint and is string; take a new path"):
            task.run_once(log.ends(topic))
    finally:
        task.stop()
    rows = driver.sql("SELECT * EXCEPT (key, topic, timestamp) FROM t ORDER BY offset", {"t": str(tmp_path)})
    assert [tuple(row.values()) for row in rows] == [
        (0, 0, None, None),
        (0, 1, 1, {"s": "x"}),
        (0, 2, None, None),
        (0, 3, 2, None),
    ]


def test_fields_called_like_the_records_own_columns_need_a_prefix(
    driver: SparkDriver, log: Log, new_name: NewName, tmp_path: Path
) -> None:
    topic = new_name()
    log.create(topic)
    log.produce(topic, 0, [(0, b"k", b'{"key": 7, "Offset": 8}', ())])
    task = start_task(log, topic, tmp_path / "clash")
    with pytest.raises(JobFailed, match=r"Offset, key .*record\.columns\.prefix"):
        task.run_once(log.ends(topic))
    task.stop()
    task = start_task(log, topic, tmp_path / "prefix", record_columns_prefix="record_", key_format="string")
    try:
        assert task.run_once(log.ends(topic)) == {(topic, 0): 1}
    finally:
        task.stop()
    tables = {"t": str(tmp_path / "prefix")}
    (row,) = driver.sql("SELECT record_key, record_offset, key, offset FROM t", tables)
    assert tuple(row.values()) == ("k", 0, 7, 8)


@deep
def test_a_topic_made_again_is_refused(
    driver: SparkDriver, log: Log, new_name: NewName, tmp_path: Path
) -> None:
    topic = new_name()
    log.create(topic)
    log.produce(topic, 0, delays(0, 1))
    task = start_task(log, topic, tmp_path, **SCHEMA)
    try:
        task.run_once(log.ends(topic))
        log.delete(topic)
        log.create(topic)
        log.produce(topic, 0, delays(0, 3))
        with pytest.raises(TopicRecreated, match=topic):
            task.run_once(log.ends(topic))
    finally:
        task.stop()


def test_records_that_came_and_went_in_an_empty_partition_are_lost_data(
    driver: SparkDriver, log: Log, new_name: NewName, tmp_path: Path
) -> None:
    """Records that retention removed from a partition without a position are lost data.

    Once the table had no position for a partition without records. If retention removed the first records
    before the first batch was due, the sink began after them.
    """
    topic = new_name()
    log.create(topic)
    task = start_task(log, topic, tmp_path, **SCHEMA)
    assert task.run_once(log.ends(topic)) == {(topic, 0): 0}
    task.stop()
    log.produce(topic, 0, delays(0, 3))
    log.delete_records(topic, 2)
    task = start_task(log, topic, tmp_path, **SCHEMA)
    try:
        with pytest.raises(DataLost, match="offset 0 is wanted, the log has 2"):
            task.run_once(log.ends(topic))
        log.delete(topic)
        with pytest.raises(PartitionGone, match=f"{topic}-0 is gone"):
            task.run_once({})
    finally:
        task.stop()


@deep
def test_fewer_records_than_wanted_wait_for_more_or_for_their_time(
    driver: SparkDriver, log: Log, new_name: NewName, tmp_path: Path
) -> None:
    topic, now = new_name(), [0.0]
    log.create(topic)
    task = start_task(
        log, topic, tmp_path, min_offsets_per_trigger="10", max_trigger_delay_ms="5000", **SCHEMA
    )
    task._clock = lambda: now[0]
    try:
        log.produce(topic, 0, delays(0, 4))
        assert task.run_once(log.ends(topic)) == {(topic, 0): 0}
        now[0] = 4.9
        assert task.run_once(log.ends(topic)) == {(topic, 0): 0}
        now[0] = 5.0
        assert task.run_once(log.ends(topic)) == {(topic, 0): 4}
        assert task.run_once(log.ends(topic)) == {(topic, 0): 4}
        log.produce(topic, 0, delays(4, 10))
        assert task.run_once(log.ends(topic)) == {(topic, 0): 14}
    finally:
        task.stop()


@deep
@pytest.mark.parametrize("first", [None, b"no json"])
def test_a_first_batch_without_any_object_leaves_the_columns_open(
    driver: SparkDriver, log: Log, new_name: NewName, tmp_path: Path, first: bytes | None
) -> None:
    """Columns stay open after a first batch of tombstones: without fields they would drop later values."""
    topic, path = new_name(), tmp_path / "table"
    log.create(topic)
    log.produce(topic, 0, [(0, b"k", first, ())])
    task = start_task(log, topic, path)
    try:
        assert task.run_once(log.ends(topic)) == {(topic, 0): 1}
        log.produce(topic, 0, [(0, b"k", b'{"carrier": "AA"}', ())])
        assert task.run_once(log.ends(topic)) == {(topic, 0): 2}
    finally:
        task.stop()
    rows = driver.sql("SELECT carrier FROM t ORDER BY offset", {"t": str(path)})
    assert rows == [{"carrier": None}, {"carrier": "AA"}]
