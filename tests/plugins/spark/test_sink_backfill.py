"""A backfill beside the live flow: each offset once, also with a compaction in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_client import Client
from plugins.spark.backfilling import request_backfill
from plugins.spark.compaction import compact
from plugins.spark.driver import SparkDriver
from plugins.spark.environment import java_found
from plugins.spark.verification import VerifiedPartition, verify_table
from tests.plugins.spark.log import Log
from tests.plugins.spark.sink_task import MONTH, SCHEMA, counts, delays, start_task

pytestmark = [
    pytest.mark.skipif(not java_found(), reason="Spark needs Java: none on the path, no JAVA_HOME"),
    pytest.mark.timeout(300),
]


def test_earlier_records_are_added_beside_later_ones(
    driver: SparkDriver, log: Log, new_name: Callable[[], str], tmp_path: Path
) -> None:
    topic = new_name()
    log.create(topic)
    log.produce(topic, 0, delays(0, 10))
    settings = {"starting_offsets": "latest", "max_offsets_per_trigger": "4"}
    task = start_task(log, topic, tmp_path, **SCHEMA, **settings)

    async def request() -> None:
        async with Client(log.bootstrap) as client:
            assert await request_backfill(client, task.table, 3 * MONTH, 0)

    async def verified() -> VerifiedPartition:
        async with Client(log.bootstrap) as client:
            (result,) = await verify_table(client, task.table)
            return result

    try:
        assert task.run_once(log.ends(topic)) == {(topic, 0): 10}
        log.produce(topic, 0, delays(10, 2))
        task.run_once(log.ends(topic))
        asyncio.run(request())
        log.produce(topic, 0, delays(12, 1))
        task.run_once(log.ends(topic))
        assert counts(driver, tmp_path) == {"n": 7, "offsets": 7}
        assert asyncio.run(verified()).is_exact
        assert compact(task.table).files_before == 3
        task.run_once(log.ends(topic))
    finally:
        task.stop()
    assert counts(driver, tmp_path) == {"n": 10, "offsets": 10}
    result = asyncio.run(verified())
    assert result.is_exact
    assert (result.start, result.end, result.rows) == (3, 13, 10)
