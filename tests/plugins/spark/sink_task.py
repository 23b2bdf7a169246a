"""A sink's task as a worker would start it, records for it, and what came of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from connect.api import RangeSinkContext
from kafka_client.records import NewRecord
from plugins.spark.driver import SparkDriver
from plugins.spark.sink import SparkSinkTask
from tests.plugins.spark.log import Log

MONTH = 31 * 86_400_000
SCHEMA = {"value.schema": "carrier STRING, delay DOUBLE", "key.format": "string"}


def delays(start: int, count: int) -> list[NewRecord]:
    """Return updates of three airlines in turn, a month apart."""
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
    properties = {key.replace("_", "."): value for key, value in settings.items()}
    config = {"name": "sink", "connector.class": "SparkSink", "topics": topic, "path": str(path)}
    try:
        task.start(config | properties)
    except BaseException:
        task.stop()
        raise
    return task


def counts(driver: SparkDriver, path: Path) -> dict[str, Any]:
    query = "SELECT count(*) AS n, count(DISTINCT partition, offset) AS offsets FROM t"
    (row,) = driver.sql(query, {"t": str(path)})
    return row
