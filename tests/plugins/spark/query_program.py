"""A program that writes topics by batches and streams in one Spark session; prints each outcome as JSON.

The cases of batches are those of Spark's KafkaSinkSuite. Each query but one copies the topic `in` to a topic
of its own.
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
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

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
    """Run all cases. Topics exist; `in` has the values a and b, `counted` has five."""
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
    case("no value", "SELECT 'k' AS key", topic="batch")
    case("type of value", "SELECT 1 AS value", topic="batch")
    case("type of topic", "SELECT 1 AS topic, 'v' AS value")
    case("null topic", "SELECT CAST(NULL AS STRING) AS topic, 'v' AS value")
    for mode in ("overwrite", "ignore", "error"):
        case(f"mode {mode}", "SELECT 'v' AS value", mode, topic="batch")


class Queries:
    """Queries of one micro-batch or more; a query's checkpoint is in a folder of its topic's name."""

    def __init__(self, session: SparkSession, bootstrap: str, folder: Path) -> None:
        self.session = session
        self.bootstrap = bootstrap
        self._folder = folder
        self._servers = {"kafka.bootstrap.servers": bootstrap}

    def copy(self, topic: str, columns: str = VALUE, exactly_once: str = "true") -> StreamingQuery:
        """Start to copy what is left of `in` to the topic."""
        rows = self._read("in").selectExpr(*columns.split(", ")).writeStream.format("millstream")
        return self._start(rows.options(**self._servers, topic=topic, exactlyOnce=exactly_once), topic)

    def count(self, topic: str) -> StreamingQuery:
        """Start to read what is left of the topic, two records a batch; progress is committed as a group."""
        rows = self._read(topic, maxOffsetsPerTrigger="2", groupId=topic)
        return self._start(rows.writeStream.format("noop"), topic)

    def _read(self, topic: str, **options: str) -> DataFrame:
        read = self.session.readStream.format("millstream").options(**self._servers, subscribe=topic)
        return read.options(startingOffsets="earliest", **options).load()

    def _start(self, rows: DataStreamWriter, topic: str) -> StreamingQuery:
        checkpoint = str(self._folder / topic)
        return rows.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()

    def forget_batch(self, topic: str, batch_id: int) -> None:
        """Have the query repeat a batch, as if the driver had died before its checkpoint had the commit."""
        for name in (f"{batch_id}", f".{batch_id}.crc"):
            (self._folder / topic / "commits" / name).unlink(missing_ok=True)

    def query_id(self, topic: str) -> str:
        """Return the id that the checkpoint has."""
        stored: str = json.loads((self._folder / topic / "metadata").read_text())["id"]
        return stored


def run_queries(queries: Queries) -> None:
    """Repeat batches, fail midway, start again, and be overtaken; queries of one round run together."""
    counting = queries.count("counted")
    end_all(
        {
            "once: first run": queries.copy("once"),
            "twice: first run": queries.copy("twice", exactly_once="false"),
            "failed: midway": queries.copy("failed", FAILS_AT_B),
            "counted: first run": counting,
        }
    )
    print_rows("counted: rows", counting)
    queries.forget_batch("once", 0)
    queries.forget_batch("twice", 0)
    counting = queries.count("counted")
    end_all(
        {
            "once: repeated": queries.copy("once"),
            "twice: repeated": queries.copy("twice", exactly_once="false"),
            "failed: repeated": queries.copy("failed"),
            "counted: started again": counting,
        }
    )
    print_rows("counted: rows left", counting)
    Log(queries.bootstrap).produce("in", 0, [(0, None, b"c", ())])
    in_new_thread(lambda: report("thread", lambda: queries.copy("once")))
    in_new_thread(lambda: start_again(queries))
    overtake_zombie(queries)


def end_all(running: dict[str, StreamingQuery]) -> None:
    """Wait for the queries' ends, and print what became of each."""
    for case, query in running.items():
        report(case, query.awaitTermination)


def print_rows(case: str, query: StreamingQuery) -> None:
    """Print how many rows the query has read."""
    print(json.dumps([case, str(sum(each.numInputRows for each in query.recentProgress))]), flush=True)


def in_new_thread(work: Callable[[], None]) -> None:
    """Do the work in a thread of its own, as a program that runs several queries may."""
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def start_again(queries: Queries) -> None:
    """Start a query in a thread that Spark knows no session of, as docs/spark.md says."""
    queries.session.createDataFrame([], "nothing INT")
    report("once: started again", lambda: queries.copy("once").awaitTermination())


def overtake_zombie(queries: Queries) -> None:
    """Let a task of the query's next batch go on after the query has written the batch; print its outcome."""
    task = BatchTask(query_id=queries.query_id("failed"), batch_id=1, task=0)
    with asyncio.Runner() as runner:
        client = Client(queries.bootstrap)
        zombie = runner.run(begin(client, task))
        report("failed: overtakes a zombie", lambda: queries.copy("failed").awaitTermination())
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
