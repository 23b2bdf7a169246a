"""A program that writes topics by batches and streams in one Spark session; prints each outcome as JSON.

A Python process starts several times in each query, for about a second of CPU: so a query tries several
things, and what needs no Spark is in test_writer.py. Queries follow each other, since Spark gives up a
Python process that has not come up within 10 s.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

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
    """Run all cases. Topics exist; `in` has the values a, b and c."""
    with tempfile.TemporaryDirectory() as own:
        session = build_session(SparkSettings(), Path(own))
        write_batches(session, bootstrap)
        run_queries(Queries(session, bootstrap, Path(folder)))
        session.stop()


def report(case: str, work: Callable[[], object]) -> None:
    """Print what became of a case: "done", or Spark's message."""
    try:
        work()
    except (PySparkException, Py4JJavaError) as error:
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
    case("null topic", "SELECT CAST(NULL AS STRING) AS topic, 'v' AS value")
    for mode in ("overwrite", "ignore"):
        case(f"mode {mode}", "SELECT 'v' AS value", mode, topic="batch")


class Queries:
    """Queries that copy the topic `in`; a query's checkpoint is in a folder of its target's name."""

    def __init__(self, session: SparkSession, bootstrap: str, folder: Path) -> None:
        self.bootstrap = bootstrap
        self._session = session
        self._folder = folder
        self._servers = {"kafka.bootstrap.servers": bootstrap}

    def set_active(self) -> None:
        """Make the session the one that Spark finds sources by in this thread (docs/spark.md)."""
        self._session.createDataFrame([], "nothing INT")

    def copy(self, topic: str, columns: str = VALUE, **options: str) -> StreamingQuery:
        """Start to copy what is left of `in` to the topic, exactly once."""
        read = self._session.readStream.format("millstream").options(**self._servers, **options)
        rows = read.options(subscribe="in", startingOffsets="earliest").load()
        write = rows.selectExpr(*columns.split(", ")).writeStream.format("millstream")
        write = write.options(**self._servers, topic=topic, exactlyOnce="true")
        checkpoint = str(self._folder / topic)
        return write.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()

    def forget_batch(self, topic: str, batch_id: int) -> None:
        """Have the query repeat a batch, as if the driver had died before its checkpoint had the commit."""
        for name in (f"{batch_id}", f".{batch_id}.crc"):
            (self._folder / topic / "commits" / name).unlink(missing_ok=True)

    def query_id(self, topic: str) -> str:
        """Return the id that the checkpoint has."""
        stored: str = json.loads((self._folder / topic / "metadata").read_text())["id"]
        return stored


def run_queries(queries: Queries) -> None:
    """Fail midway, repeat a batch, start again from another thread, and be overtaken."""
    copy_by_twos("first run", queries)
    report("failed: midway", lambda: queries.copy("failed", FAILS_AT_B).awaitTermination())
    queries.forget_batch("once", 1)
    Log(queries.bootstrap).produce("in", 0, [(0, None, b"d", ())])
    in_new_thread(lambda: report("thread", lambda: queries.copy("once")))
    in_new_thread(lambda: (queries.set_active(), copy_by_twos("repeated", queries)))
    overtake_zombie(queries)


def copy_by_twos(case: str, queries: Queries) -> None:
    """Copy two records a batch; progress is committed as a group. Print how many rows were read."""
    query = queries.copy("once", maxOffsetsPerTrigger="2", groupId="progress")
    report(f"once: {case}", query.awaitTermination)
    rows = sum(each.numInputRows for each in query.recentProgress)
    print(json.dumps([f"once: rows of {case}", str(rows)]), flush=True)


def in_new_thread(work: Callable[[], object]) -> None:
    """Do the work in a thread of its own, as a program that runs several queries may."""
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def overtake_zombie(queries: Queries) -> None:
    """Let the task that failed go on after the query has written its batch again; print its outcome."""
    task = BatchTask(query_id=queries.query_id("failed"), batch_id=0, task=0)
    with asyncio.Runner() as runner:
        client = Client(queries.bootstrap)
        zombie = runner.run(begin(client, task))
        report("failed: repeated", lambda: queries.copy("failed").awaitTermination())
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
