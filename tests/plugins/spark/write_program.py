"""A program that writes topics by batches and streams in one Spark session; prints each outcome as JSON.

The cases of batches are those of Spark's KafkaSinkSuite. Each query copies the topic `in` to a topic of its
own; the query's folder is its checkpoint.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from kafka_client import Client
from kafka_client.errors import TransactionError
from plugins.spark.row_sender import RowSender
from plugins.spark.session import build_session
from plugins.spark.settings import SparkSettings
from plugins.spark.task_transaction import BatchTask, TaskTransaction
from plugins.spark.write_options import DEFAULT_PREFIX
from tests.plugins.spark.log import Log

VALUE = "CAST(value AS STRING) AS value"
FAILS_AT_B = f"{VALUE}, CASE WHEN CAST(value AS STRING) = 'b' THEN -1 END AS partition"
"""Columns by which the task fails in its second row: no record has a negative partition."""


def main(bootstrap: str, folder: str) -> None:
    """Run all cases. Topics exist; `in` has the values a and b."""
    with tempfile.TemporaryDirectory() as own:
        session = build_session(SparkSettings(), Path(own))
        write_batches(session, bootstrap)
        run_queries(Queries(session, bootstrap, Path(folder)))
        session.stop()


def report(case: str, work: Callable[[], object]) -> None:
    """Print what became of a case: "done", or Spark's message."""
    try:
        work()
    except PySparkException as error:
        print(json.dumps([case, str(error)]), flush=True)
    else:
        print(json.dumps([case, "done"]), flush=True)


def write_batches(session: SparkSession, bootstrap: str) -> None:
    """Write rows of all columns, and those that are refused."""

    def case(name: str, query: str, mode: str | None = "append", **options: str) -> None:
        writer = session.sql(query).write.format("millstream").option("kafka.bootstrap.servers", bootstrap)
        report(name, writer.options(**options).mode(mode).save)

    headers = "array(named_struct('key', 'h', 'value', CAST('1' AS BINARY)))"
    columns = f"'k' AS key, 'v' AS value, {headers} AS headers, 1 AS partition, 'ignored' AS other"
    case("columns", f"SELECT 'batch' AS topic, {columns}, TIMESTAMP '1970-01-02' AS timestamp")
    case("option before column", "SELECT 'nowhere' AS topic, 'w' AS value, 0 AS partition", topic="batch")
    case("no topic", "SELECT 'v' AS value")
    case("no value", "SELECT 'k' AS key", topic="batch")
    case("type of value", "SELECT 1 AS value", topic="batch")
    case("type of topic", "SELECT 1 AS topic, 'v' AS value")
    case("null topic", "SELECT CAST(NULL AS STRING) AS topic, 'v' AS value")
    for mode in ("overwrite", "ignore", "error"):
        case(f"mode {mode}", "SELECT 'v' AS value", mode, topic="batch")


class Queries:
    """Queries that copy `in`, one micro-batch a run."""

    def __init__(self, session: SparkSession, bootstrap: str, folder: Path) -> None:
        self._session = session
        self.bootstrap = bootstrap
        self._folder = folder

    def run(self, topic: str, columns: str = VALUE, exactly_once: str = "true") -> None:
        """Run the query of the topic until it has copied everything."""
        servers = {"kafka.bootstrap.servers": self.bootstrap}
        rows: DataFrame = (
            self._session.readStream.format("millstream")
            .options(**servers, subscribe="in", startingOffsets="earliest")
            .load()
        )
        query = (
            rows.selectExpr(*columns.split(", "))
            .writeStream.format("millstream")
            .options(**servers, topic=topic, exactlyOnce=exactly_once)
            .option("checkpointLocation", str(self._folder / topic))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    def forget_batch(self, topic: str, batch_id: int) -> None:
        """Have the query repeat a batch, as if the driver had died before its checkpoint had the commit."""
        for name in (f"{batch_id}", f".{batch_id}.crc"):
            (self._folder / topic / "commits" / name).unlink(missing_ok=True)

    def query_id(self, topic: str) -> str:
        """Return the id that the checkpoint has."""
        stored: str = json.loads((self._folder / topic / "metadata").read_text())["id"]
        return stored


def run_queries(queries: Queries) -> None:
    """Repeat batches, fail midway, start again, and be overtaken."""
    for topic, exactly_once in (("once", "true"), ("twice", "false")):
        run = partial(queries.run, topic, exactly_once=exactly_once)
        report(f"{topic}: first run", run)
        queries.forget_batch(topic, 0)
        report(f"{topic}: repeated", run)
    report("failed: midway", lambda: queries.run("failed", FAILS_AT_B))
    report("failed: repeated", lambda: queries.run("failed"))
    Log(queries.bootstrap).produce("in", 0, [(0, None, b"c", ())])
    report("once: started again", lambda: queries.run("once"))
    overtake_zombie(queries)


def overtake_zombie(queries: Queries) -> None:
    """Let a task of the query's next batch go on after the query has written the batch; print its outcome.

    The query starts in this thread: in a new one Spark does not find sources in Python for a stream's writes.
    """
    task = BatchTask(query_id=queries.query_id("failed"), batch_id=1, task=0)
    with asyncio.Runner() as runner:
        client = Client(queries.bootstrap)
        zombie = runner.run(begin(client, task))
        report("failed: overtakes a zombie", lambda: queries.run("failed"))
        print(json.dumps(["zombie", runner.run(end(client, zombie))]), flush=True)


async def begin(client: Client, task: BatchTask) -> TaskTransaction:
    """Send a row in the task's transaction, which stays open."""
    await client.__aenter__()
    zombie = await TaskTransaction.open(client, task, DEFAULT_PREFIX, {"transaction_timeout_ms": 60_000})
    await RowSender(client, zombie.producer, "failed").send(pa.record_batch({"value": ["zombie"]}))
    return zombie


async def end(client: Client, zombie: TaskTransaction) -> str:
    """Commit, and return what became of it."""
    try:
        await zombie.commit("failed", 1)
    except TransactionError as error:
        return type(error).__name__
    finally:
        await zombie.close()
        await client.close()
    return "done"


if __name__ == "__main__":
    main(*sys.argv[1:])
