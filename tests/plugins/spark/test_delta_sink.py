"""The sink with a Delta table: a real log and a real Spark, read back by delta-rs and by Spark.

The commits alone are tested in `test_delta_table`, without Spark.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pytest

from connect.api import ConfigError
from kafka_client import Client
from plugins.spark.compaction import compact
from plugins.spark.delta_table import DeltaTable
from plugins.spark.driver import SparkDriver
from plugins.spark.environment import java_found
from plugins.spark.errors import Fenced, JobFailed, TopicRecreated, id_text
from plugins.spark.verification import VerifiedPartition, verify_table
from tests.plugins.spark.log import Log
from tests.plugins.spark.sink_task import SCHEMA, counts, delays, start_task
from tests.support.depth import deep

pytestmark = [
    pytest.mark.skipif(not java_found(), reason="Spark needs Java: none on the path, no JAVA_HOME"),
    pytest.mark.timeout(300),
]
NewName = Callable[[], str]
DELTA = {"table.format": "delta"}


def rows(path: Path, *names: str) -> list[tuple[Any, ...]]:
    """Return the rows as delta-rs reads them, in order."""
    read: Any = deltalake.DeltaTable(str(path)).to_pyarrow_table(columns=list(names))
    return sorted((tuple(row.values()) for row in read.to_pylist()), key=repr)


def verified(log: Log, path: Path) -> list[VerifiedPartition]:
    async def main() -> list[VerifiedPartition]:
        async with Client(log.bootstrap) as client:
            return await verify_table(client, DeltaTable(path))

    return asyncio.run(main())


def test_records_become_rows_of_a_delta_table(
    driver: SparkDriver, log: Log, new_name: NewName, tmp_path: Path
) -> None:
    topic, path = new_name(), tmp_path / "a table [1]"
    log.create(topic, 2)
    log.produce(topic, 0, delays(0, 4))
    log.produce(topic, 1, [(0, b"gone", None, ()), (0, None, b'{"carrier": "B 1/2"}', ())])
    settings = {**DELTA, **SCHEMA, "partition.by": "month=date_format(timestamp,'yyyy-MM'); carrier"}
    task = start_task(log, topic, path, **settings)
    try:
        assert task.run_once(log.ends(topic)) == {(topic, 0): 4, (topic, 1): 2}
        before = task.table.latest()
        assert task.run_once(log.ends(topic)) == {(topic, 0): 4, (topic, 1): 2}
        assert task.table.latest() == before
    finally:
        task.stop()
    log.produce(topic, 0, delays(4, 3))
    task = start_task(log, topic, path, **settings)
    try:
        assert task.run_once(log.ends(topic)) == {(topic, 0): 7, (topic, 1): 2}
    finally:
        task.stop()
    handle = deltalake.DeltaTable(str(path))
    topic_id = id_text(log.ends(topic)[topic, 0].topic_id.hex())  # type: ignore[index]
    assert [handle.transaction_version(f"sink/{topic_id}/{p}") for p in (0, 1)] == [7, 2]
    assert handle.metadata().partition_columns == ["month", "carrier"]
    assert rows(path, "partition", "offset", "key", "delay", "carrier", "month") == [
        *((0, n, f"A{n % 3}", n / 2, f"A{n % 3}", f"1970-{n + 1:02}") for n in range(7)),
        (1, 0, "gone", None, None, "1970-01"),
        (1, 1, None, None, "B 1/2", "1970-01"),
    ]
    assert counts(driver, path) == {"n": 9, "offsets": 9}
    assert driver.sql("SELECT carrier, delay FROM t_latest WHERE key = 'A0'", {"t": str(path)}) == [
        {"carrier": "A0", "delay": 3.0}
    ]
    assert [(each.rows, each.is_exact) for each in verified(log, path)] == [(7, True), (2, True)]


@deep
def test_columns_that_later_values_bring_are_added(
    driver: SparkDriver, log: Log, new_name: NewName, tmp_path: Path
) -> None:
    topic = new_name()
    log.create(topic)
    log.produce(topic, 0, [(0, b"k", b'{"n": 1}', ())])
    settings = {**DELTA, "schema.evolution": "backward"}
    task = start_task(log, topic, tmp_path, **settings)
    try:
        task.run_once(log.ends(topic))
        log.produce(topic, 0, [(0, b"k", b'{"n": 2, "later": {"s": "x"}}', ())])
        assert task.run_once(log.ends(topic)) == {(topic, 0): 2}
        assert rows(tmp_path, "n", "later") == [(1, None), (2, {"s": "x"})]
        assert compact(task.table).files_before == 0, "their columns differ"
        deltalake.DeltaTable(str(tmp_path)).optimize.compact()
        log.produce(topic, 0, [(0, b"k", b'{"n": 3}', ())])
        assert task.run_once(log.ends(topic)) == {(topic, 0): 3}
    finally:
        task.stop()
    assert counts(driver, tmp_path) == {"n": 3, "offsets": 3}
    (result,) = verified(log, tmp_path)
    assert (result.rows, result.is_exact) == (3, True)
    task = start_task(log, topic, tmp_path, **DELTA, value_schema="n STRING")
    try:
        log.produce(topic, 0, [(0, None, b'{"n": "text"}', ())])
        with pytest.raises(Exception, match="n was long and is string"):
            task.run_once(log.ends(topic))
    finally:
        task.stop()


def test_older_tasks_and_topics_made_again_are_refused(
    driver: SparkDriver, log: Log, new_name: NewName, tmp_path: Path
) -> None:
    topic = new_name()
    log.create(topic)
    log.produce(topic, 0, delays(0, 1))
    old = start_task(log, topic, tmp_path, **DELTA, **SCHEMA)
    new = start_task(log, topic, tmp_path, **DELTA, **SCHEMA)
    try:
        with pytest.raises(Fenced):
            old.run_once(log.ends(topic))
        assert new.run_once(log.ends(topic)) == {(topic, 0): 1}
        log.delete(topic)
        log.create(topic)
        with pytest.raises(TopicRecreated, match=topic):
            new.run_once(log.ends(topic))
    finally:
        old.stop()
        new.stop()
    with pytest.raises(ConfigError, match="is a table of the format delta"):
        start_task(log, topic, tmp_path, **SCHEMA)


@deep
def test_a_partition_column_of_an_inferred_field_needs_a_declaration(
    driver: SparkDriver, log: Log, new_name: NewName, tmp_path: Path
) -> None:
    topic = new_name()
    log.create(topic)
    settings = {**DELTA, "partition.by": "carrier"}
    with pytest.raises(JobFailed, match=r"(?s)partition\.by: .*`carrier`.*value\.schema"):
        start_task(log, topic, tmp_path, **settings)
