"""The columns of the sink's table: several topics, partition columns, deleted keys, topics made again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from connect.api import ConfigError
from kafka_client.records import NewRecord
from plugins.spark.driver import SparkDriver
from plugins.spark.environment import java_found
from plugins.spark.errors import SchemaConflict, TopicRecreated, id_text
from plugins.spark.table import ParquetTable
from tests.plugins.spark.log import Log
from tests.plugins.spark.sink_task import SCHEMA, delays, start_task

pytestmark = [
    pytest.mark.skipif(not java_found(), reason="Spark needs Java: none on the path, no JAVA_HOME"),
    pytest.mark.timeout(300),
]
NewName = Callable[[], str]


def values(*objects: object, key: bytes | None = None) -> list[NewRecord]:
    return [(0, key, json.dumps(each).encode(), ()) for each in objects]


def rows_of(driver: SparkDriver, path: Path, query: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in driver.sql(query, {"t": str(path)})]


def test_every_topic_brings_its_columns(
    driver: SparkDriver,
    log: Log,
    new_name: NewName,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Once the first topic decided on the columns, and the other's fields were lost in silence."""
    big, small, later, conflict = (new_name() for _ in range(4))
    for topic in (big, small, later, conflict):
        log.create(topic)
    log.produce(big, 0, values({"x": 1, "both": 1, "nothing": None}))
    log.produce(small, 0, values({"y": "one", "both": "text"}))
    task = start_task(log, f"{big},{small},{later},{conflict}", tmp_path)
    try:
        task.run_once(log.ends(big, small))
        assert "both is string in" in caplog.text or "both is bigint in" in caplog.text
        log.produce(later, 0, values({"z": 2.5, "nothing": "is text"}))
        log.produce(small, 0, values({"y": "two", "more": 1}, {"y": 3}))
        task.run_once(log.ends(big, small, later))
        assert f"1 values have fields without a column, such as more of {small}" in caplog.text
        log.produce(conflict, 0, values({"x": "text"}))
        with pytest.raises(SchemaConflict, match=f"x of topic {conflict} is string.* bigint: declare"):
            task.run_once(log.ends(big, small, later, conflict))
    finally:
        task.stop()
    rows = rows_of(driver, tmp_path, "SELECT topic, offset, x, y, z, both, nothing FROM t")
    expected = [
        (big, 0, 1, None, None, "1", None),
        (small, 0, None, "one", None, "text", None),
        (small, 1, None, "two", None, None, None),
        (small, 2, None, "3", None, None, None),
        (later, 0, None, None, 2.5, None, "is text"),
    ]
    assert sorted(rows, key=str) == sorted(expected, key=str)


def test_the_first_batch_of_a_topic_is_looked_through_if_a_sample_does_not_show_all_fields(
    driver: SparkDriver, log: Log, new_name: NewName, tmp_path: Path
) -> None:
    topic = new_name()
    log.create(topic)
    log.produce(topic, 0, values(*[{"x": 1}] * 10_000), values({"x": 1.5, "y": "kept"}))
    task = start_task(log, topic, tmp_path)
    try:
        task.run_once(log.ends(topic))
    finally:
        task.stop()
    assert rows_of(driver, tmp_path, "SELECT x, y FROM t WHERE offset = 10000") == [(1.5, "kept")]
    assert rows_of(driver, tmp_path, "SELECT count(*) FROM t WHERE x = 1") == [(10_000,)]


def test_columns_may_grow_with_later_values(
    driver: SparkDriver, log: Log, new_name: NewName, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    topic = new_name()
    log.create(topic)
    task = start_task(log, topic, tmp_path, schema_evolution="backward")
    try:
        log.produce(topic, 0, values({"x": 1}))
        task.run_once(log.ends(topic))
        log.produce(topic, 0, values({"x": "no number", "y": True}))
        task.run_once(log.ends(topic))
    finally:
        task.stop()
    assert rows_of(driver, tmp_path, "SELECT x, y FROM t ORDER BY offset") == [(1, None), (None, True)]
    assert "x of topic" in caplog.text


def test_values_with_one_folder_name_are_one_value_of_a_partition_column(
    driver: SparkDriver, log: Log, new_name: NewName, tmp_path: Path
) -> None:
    """Once Spark failed for ever with FileAlreadyExistsException, and the table had no rows."""
    topic = new_name()
    log.create(topic)
    carriers = ["", None, "__HIVE_DEFAULT_PARTITION__", "AA"]
    log.produce(topic, 0, values(*({"carrier": c, "n": -0.0 if c else 0.0} for c in carriers)))
    log.produce(topic, 0, values(*({"carrier": "AA", "n": n} for n in (0.0, -0.0, 0.0, 1.5))))
    log.produce(topic, 0, [(0, key, b'{"carrier": "", "n": 1}', ()) for key in (b"\xff", b"\xfe", b"", None)])
    task = start_task(log, topic, tmp_path, partition_by="carrier; n; key")
    try:
        assert task.run_once(log.ends(topic)) == {(topic, 0): 12}
    finally:
        task.stop()
    query = "SELECT carrier, n, count(*) FROM t GROUP BY 1, 2 ORDER BY 1, 2"
    assert rows_of(driver, tmp_path, query) == [
        (None, 0.0, 3),
        (None, 1.0, 4),
        ("AA", 0.0, 4),
        ("AA", 1.5, 1),
    ]


@pytest.mark.parametrize("prefix", ["", "record_"])
def test_the_latest_view_has_no_deleted_keys(
    driver: SparkDriver, log: Log, new_name: NewName, tmp_path: Path, prefix: str
) -> None:
    """Once deleted keys stayed with null fields, and with a prefix every row was in the view."""
    topic = new_name()
    log.create(topic)
    log.produce(topic, 0, values({"v": 1}, {"v": 2}, key=b"a") + values({"v": 3}, {"v": 4}, key=b"b"))
    log.produce(topic, 0, [(0, b"a", None, ()), (0, b"c", b"no json", ()), *values({"v": 5})])
    settings = {"record_columns_prefix": prefix, "key_format": "string"}
    task = start_task(log, topic, tmp_path, **settings)
    try:
        task.run_once(log.ends(topic))
    finally:
        task.stop()
    query = f"SELECT {prefix}key, v FROM t_latest ORDER BY 1"
    assert rows_of(driver, tmp_path, query) == [("b", 4), ("c", None)]
    (row,) = driver.sql("SELECT * FROM t_latest WHERE v = 4", {"t": str(tmp_path)})
    assert set(row) == {*(prefix + n for n in ("key", "topic", "partition", "offset", "timestamp")), "v"}
    with pytest.raises(ConfigError, match=r"record\.columns\.prefix"):
        start_task(log, topic, tmp_path, record_columns_prefix="other_")


def test_a_topic_made_again_is_read_once_its_id_is_accepted(
    driver: SparkDriver, log: Log, new_name: NewName, tmp_path: Path
) -> None:
    topic = new_name()
    log.create(topic)
    log.produce(topic, 0, delays(0, 5))
    task = start_task(log, topic, tmp_path, **SCHEMA)
    try:
        task.run_once(log.ends(topic))
        log.delete(topic)
        log.create(topic)
        log.produce(topic, 0, delays(1, 1))
        with pytest.raises(TopicRecreated, match=r"accept\.topic\.ids=") as caught:
            task.run_once(log.ends(topic))
    finally:
        task.stop()
    accepted = f"{topic}:{id_text(caught.value.cluster_id)}"
    assert accepted in str(caught.value)
    task = start_task(log, topic, tmp_path, **SCHEMA, accept_topic_ids=accepted)
    try:
        assert task.run_once(log.ends(topic)) == {(topic, 0): 1}
    finally:
        task.stop()
    assert ParquetTable(tmp_path).latest().rows == 6  # type: ignore[union-attr]
    # The newest row of A1 is that of the new topic, though its offset is lower.
    query = "SELECT key, offset, delay FROM t_latest ORDER BY key"
    assert rows_of(driver, tmp_path, query) == [("A0", 3, 1.5), ("A1", 0, 0.5), ("A2", 2, 1.0)]


def test_a_topic_made_again_while_spark_reads_it_is_refused(
    driver: SparkDriver, log: Log, new_name: NewName, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ends are of the deleted topic, and Spark reads the one that was made meanwhile."""
    topic = new_name()
    log.create(topic)
    log.produce(topic, 0, delays(0, 5))
    task = start_task(log, topic, tmp_path, **SCHEMA)
    try:
        ends = log.ends(topic)
        log.delete(topic)
        log.create(topic)
        log.produce(topic, 0, delays(0, 5))
        with pytest.raises(TopicRecreated, match=topic):
            task.run_once(ends)
    finally:
        task.stop()
    assert ParquetTable(tmp_path).latest().rows == 0  # type: ignore[union-attr]
