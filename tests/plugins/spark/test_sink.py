"""The sink's coordinator against a real log and a real Spark: every record once, whatever dies when."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from connect.api import ConfigError, RangeSinkContext, RetriableError
from logd.records import NewRecord
from plugins.spark.driver import SparkDriver
from plugins.spark.environment import java_found
from plugins.spark.errors import DataLost, Fenced, JobFailed, PartitionGone, TopicRecreated
from plugins.spark.sink import SparkSinkTask
from plugins.spark.table import ParquetTable
from tests.plugins.spark.log import Log

pytestmark = [
    pytest.mark.skipif(not java_found(), reason="Spark needs Java: none on the path, no JAVA_HOME"),
    pytest.mark.timeout(300),
]
NewName = Callable[[], str]
MONTH = 31 * 86_400_000
SCHEMA = {"value.schema": "carrier STRING, delay DOUBLE", "key.format": "string"}


def delays(start: int, count: int) -> list[NewRecord]:
    """An update of one of three airlines each, a month apart."""
    return [
        (
            i * MONTH,
            b"A%d" % (i % 3),
            json.dumps({"carrier": f"A{i % 3}", "delay": i / 2}).encode(),
            (),
        )
        for i in range(start, start + count)
    ]


def start_task(log: Log, topic: str, path: Path, **settings: str) -> SparkSinkTask:
    task = SparkSinkTask()
    task.context = RangeSinkContext(
        connector="sink", task_id=0, group_id="connect-sink", bootstrap_servers=log.bootstrap, topics=(topic,)
    )
    given = {key.replace("_", "."): value for key, value in settings.items()}
    task.start({"name": "sink", "connector.class": "SparkSink", "topics": topic, "path": str(path), **given})
    return task


def counts(driver: SparkDriver, path: Path) -> dict[str, Any]:
    query = "SELECT count(*) AS n, count(DISTINCT partition, offset) AS offsets FROM t"
    (row,) = driver.sql(query, {"t": str(path)})
    return row


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


def test_a_crash_after_any_step_leaves_every_record_once(
    driver: SparkDriver, log: Log, new_name: NewName, tmp_path: Path
) -> None:
    """The steps are in the sink's docstring; each crash is followed by a new task, as by a new worker."""

    class Crash(BaseException):
        pass

    def dies_before(*args: Any, **kwargs: Any) -> Any:
        raise Crash

    def dies_after(step: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            step(*args, **kwargs)
            raise Crash

        return call

    topic = new_name()
    log.create(topic)
    produced = 0
    for crash in ("before write", "after write", "before commit", "after commit"):
        log.produce(topic, 0, delays(produced, 5))
        produced += 5
        task = start_task(log, topic, tmp_path, **SCHEMA)
        when, step = crash.split()
        with pytest.MonkeyPatch.context() as patch:
            target: Any = driver if step == "write" else task.table
            patch.setattr(
                target, step, dies_before if when == "before" else dies_after(getattr(target, step))
            )
            with pytest.raises(Crash):
                task.run_once(log.ends(topic))
        task.stop()
    task = start_task(log, topic, tmp_path, **SCHEMA)
    try:
        assert task.run_once(log.ends(topic)) == {(topic, 0): produced}
        assert counts(driver, tmp_path) == {"n": produced, "offsets": produced}
        kept = {Path(file.path).parts[1] for file in task.table.files()}
        assert {folder.name for folder in task.table.data_path.iterdir()} == kept
    finally:
        task.stop()


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
    """The table had no position of a partition without records: once retention had taken the first ones, or
    before the first batch was due, the sink began behind them."""
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


def test_spark_killed_is_started_again(
    driver: SparkDriver, log: Log, new_name: NewName, tmp_path: Path
) -> None:
    topic = new_name()
    log.create(topic)
    log.produce(topic, 0, delays(0, 5))
    task = start_task(log, topic, tmp_path, **SCHEMA)
    try:
        driver.wait_ready()
        starts = driver.starts
        assert driver.pid is not None
        os.kill(driver.pid, signal.SIGKILL)
        ends = log.ends(topic)
        deadline = time.monotonic() + 200
        while True:
            try:
                assert task.run_once(ends) == {(topic, 0): 5}
                break
            except RetriableError:
                assert time.monotonic() < deadline
        assert driver.starts == starts + 1
        assert counts(driver, tmp_path) == {"n": 5, "offsets": 5}
    finally:
        task.stop()


@pytest.mark.parametrize("first", [None, b"no json"])
def test_a_first_batch_without_any_object_leaves_the_columns_open(
    driver: SparkDriver, log: Log, new_name: NewName, tmp_path: Path, first: bytes | None
) -> None:
    """A schema inferred from a tombstone has no fields; kept, it would leave out all later values'."""
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
