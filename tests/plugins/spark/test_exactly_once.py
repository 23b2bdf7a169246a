"""A micro-batch's task that is killed, repeated or overtaken at each step of its transaction. Without Spark.

A kill is a task of which nothing comes any more: its connections close, its transaction stays open.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pyarrow as pa
import pytest

from kafka_client import Client
from kafka_client.errors import ConfigError, TransactionError
from plugins.spark.arrow import read_arrow
from plugins.spark.errors import BatchChanged, InvalidRow
from plugins.spark.exactly_once import write_once
from plugins.spark.options import parse_options
from plugins.spark.ranges import resolve_ranges
from plugins.spark.row_sender import RowSender
from plugins.spark.task_transaction import BatchTask, TaskTransaction
from plugins.spark.write_options import WriteOptions, parse_stream_write_options, parse_write_options
from tests.plugins.spark.log import Log
from tests.support.logd_process import LogdProcess

SERVERS = {"kafka.bootstrap.servers": "localhost:9092", "topic": "t"}


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Log]:
    with LogdProcess(tmp_path_factory.mktemp("exactly-once-logd")) as logd:
        yield Log(logd.bootstrap)


class Query:
    """A query that writes to a topic of its own, and the committed values there."""

    def __init__(self, log: Log, topic: str) -> None:
        self._log = log
        self._topic = topic
        log.create(topic, 2)
        servers = {"kafka.bootstrap.servers": log.bootstrap}
        self.options: WriteOptions = parse_stream_write_options(
            {**servers, "topic": topic, "exactlyOnce": "true"}
        )
        self._read = {**servers, "subscribe": topic, "kafka.isolation.level": "read_committed"}

    def task(self, batch_id: int, task: int = 0) -> BatchTask:
        return BatchTask(query_id=f"query-{self._topic}", batch_id=batch_id, task=task)

    def write(self, batch_id: int, *values: str, task: int = 0) -> int:
        return write_once(self.options, self.task(batch_id, task), iter([rows(*values)]))

    async def open(self, client: Client, batch_id: int) -> TaskTransaction:
        """Open an attempt by hand, to stop it at a step."""
        prefix = self.options.transactional_id_prefix
        return await TaskTransaction.open(client, self.task(batch_id), prefix, self.options.producer)

    async def send(self, client: Client, transaction: TaskTransaction, *values: str) -> None:
        await RowSender(client, transaction.producer, self._topic).send(rows(*values))

    def client(self) -> Client:
        return Client(self._log.bootstrap)

    def values(self) -> list[str]:
        """Return the committed values in order of their names; those of an open transaction are not read."""
        options = parse_options(self._read)
        ranges = asyncio.run(resolve_ranges(options))
        batches = (batch for each in ranges for batch in read_arrow(options, each))
        return sorted(value.decode() for batch in batches for value in batch.column("value").to_pylist())


def rows(*values: str) -> pa.RecordBatch:
    return pa.record_batch({"value": pa.array(values, pa.string())})


def test_a_batch_that_was_committed_is_not_written_again(log: Log) -> None:
    """The driver died after its tasks' commits, before its checkpoint had the batch."""
    query = Query(log, "repeated")
    assert query.write(0, "a", "b") == 2
    assert query.write(0, "a", "b") == 0
    assert query.write(1, "c") == 1
    assert query.write(1, "c", task=1) == 1, "another task has a transaction of its own"
    assert query.write(0, "a", "b") == 0, "a checkpoint of before"
    assert query.values() == ["a", "b", "c", "c"]


@pytest.mark.parametrize("step", ["opened", "sent"])
def test_a_task_that_is_killed_before_its_commit_leaves_nothing(log: Log, step: str) -> None:
    query = Query(log, f"killed-{step}")
    query.write(0, "before")

    async def die() -> None:
        async with query.client() as client:
            transaction = await query.open(client, 1)
            if step == "sent":
                await query.send(client, transaction, "a", "b")

    asyncio.run(die())
    assert query.values() == ["before"]
    assert query.write(1, "a", "b") == 2
    assert query.values() == ["a", "b", "before"]


def test_a_commit_without_a_known_outcome_is_found_by_the_next_attempt(log: Log) -> None:
    """The worker was killed after its request to commit, before the response."""
    query = Query(log, "unknown")

    async def commit_and_die() -> None:
        async with query.client() as client:
            transaction = await query.open(client, 0)
            await query.send(client, transaction, "a", "b")
            await transaction.commit("unknown", 2)

    asyncio.run(commit_and_die())
    assert query.write(0, "a", "b") == 0
    assert query.values() == ["a", "b"]


@pytest.mark.parametrize("step", ["opened", "sent"])
def test_an_older_attempt_is_fenced_by_a_newer_one(log: Log, step: str) -> None:
    """Spark gave a slow task up, and the task goes on beside its repetition."""
    query = Query(log, f"overtaken-{step}")

    async def overtaken() -> None:
        async with query.client() as client:
            older = await query.open(client, 0)
            if step == "sent":
                await query.send(client, older, "a", "b")
            assert await asyncio.to_thread(query.write, 0, "a", "b") == 2
            with pytest.raises(TransactionError):
                await query.send(client, older, "a", "b")
                await older.commit(f"overtaken-{step}", 2)
            await older.close()

    asyncio.run(overtaken())
    assert query.values() == ["a", "b"]


def test_a_newer_attempt_that_comes_after_the_commit_writes_nothing(log: Log) -> None:
    query = Query(log, "late")

    async def late() -> None:
        async with query.client() as client:
            first = await query.open(client, 0)
            await query.send(client, first, "a")
            await first.commit("late", 1)
            second = await query.open(client, 0)
            assert second.is_done
            await second.close()
            await first.close()

    asyncio.run(late())
    assert query.values() == ["a"]


def test_a_failed_row_aborts_the_task(log: Log) -> None:
    query = Query(log, "bad-row")
    bad = pa.record_batch({"value": ["x"], "partition": pa.array([-1], pa.int32())})
    with pytest.raises(InvalidRow):
        write_once(query.options, query.task(0), iter([rows("a"), bad]))
    assert query.values() == []
    assert query.write(0, "a") == 1
    assert query.values() == ["a"]


def test_a_batch_that_spark_divides_otherwise_is_refused(log: Log) -> None:
    query = Query(log, "divided")
    query.write(3, "a", "b")
    with pytest.raises(BatchChanged, match="batch 3, task 0: 2 rows were committed before, now there are 3"):
        query.write(3, "a", "b", "c")
    assert query.values() == ["a", "b"]


def test_a_task_without_rows_begins_no_transaction() -> None:
    unreachable = parse_stream_write_options({**SERVERS, "exactlyOnce": "true"})
    task = BatchTask(query_id="q", batch_id=0, task=0)
    assert write_once(unreachable, task, iter([rows()])) == 0


def test_options_of_exactly_once() -> None:
    options = parse_stream_write_options(
        {**SERVERS, "exactlyonce": "true", "transactionalIdPrefix": "p", "kafka.acks": "all"}
        | {"checkpointlocation": "of Spark", "queryname": "of Spark"}
    )
    assert (options.exactly_once, options.transactional_id_prefix) == (True, "p")
    assert options.producer == {"transaction_timeout_ms": 900_000}
    assert not parse_stream_write_options(SERVERS).exactly_once


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"exactlyOnce": "perhaps"}, "exactlyOnce"),
        ({"exactlyOnce": "true", "kafka.acks": "1"}, "kafka.acks"),
        ({"exactlyOnce": "true", "kafka.enable.idempotence": "false"}, "kafka.enable.idempotence"),
        ({"exactlyOnce": "true", "kafka.transactional.id": "x"}, "kafka.transactional.id"),
        ({"transactionalIdPrefix": "p"}, "transactionalIdPrefix"),
        ({"kafka.transaction.timeout.ms": "1000"}, "kafka.transaction.timeout.ms"),
    ],
)
def test_a_bad_option_of_a_stream_is_named(changes: dict[str, str], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_stream_write_options({**SERVERS, **changes})
    assert caught.value.key == key


def test_a_batch_write_is_not_exactly_once() -> None:
    with pytest.raises(ConfigError, match="is for streams"):
        parse_write_options({**SERVERS, "exactlyOnce": "true"})
