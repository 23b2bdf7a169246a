"""A query on a broker: its events written, its application run as a process, its output read."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.nexmark.events import AUCTIONS, BIDS, PERSONS, Event, topic_and_key
from benchmarks.nexmark.queries import Query
from kafka_client import Admin, BatchFetcher, BatchProducer, Client, NewTopic, TopicPartition
from kafka_client.records import NewRecord
from streams.graph import SinkNode

CHUNK = 5000
"""Events that are sent together; each topic's of them are a batch."""


class TopicExistsError(Exception):
    """An error: the topic exists already, and may have events or results that the model does not know."""


@dataclass(frozen=True, slots=True)
class Used:
    """The cost of one run of an application: seconds from its tasks' start to its end, and CPU seconds."""

    seconds: float
    cpu_seconds: float


async def fill(bootstrap: str, queries: Iterable[Query], events: Iterable[Event]) -> None:
    """Create the topics of the events and of the queries' outputs, and write the events."""
    encode, rest = msgspec.json.Encoder().encode, iter(events)
    async with Client(bootstrap) as client:
        await make_topics(Admin(client), PERSONS, AUCTIONS, BIDS, *(query.output for query in queries))
        async with BatchProducer(client) as producer:
            while chunk := list(islice(rest, CHUNK)):
                records: dict[str, list[NewRecord]] = {}
                for event in chunk:
                    topic, key = topic_and_key(event)
                    record = (event.date_time, key.to_bytes(8, "big"), encode(event), ())
                    records.setdefault(topic, []).append(record)
                for topic, batch in records.items():
                    await producer.send(topic, 0, batch)
            await producer.flush()


async def make_topics(admin: Admin, *names: str) -> None:
    """Create topics of one partition. Raises TopicExistsError if the broker has one of them."""
    there = await admin.list_topics()
    for name in names:
        if name in there:
            raise TopicExistsError(
                f"the broker has a topic {name!r} already: delete it, or take another broker"
            )
    # The events are of 2015, and retention goes by their time.
    keep = {"retention.ms": "-1"}
    await admin.create_topics([NewTopic(name, 1, 1, configs=keep) for name in names])


def run_application(bootstrap: str, query: Query, state: Path) -> Used:
    """Run a new application until it has read all records of the topics. Return the cost.

    Raises CalledProcessError if the application fails.
    """
    overrides = (
        f"state.dir={state}",
        "replication.factor=1",
        # What closed with the very last record is to be in the output, too.
        "__emit.interval.ms.kstreams.windowed.aggregation__=0",
    )
    command = [
        *(sys.executable, "-m", "millstream", "streams", "run", f"benchmarks.nexmark.queries:{query.name}"),
        *("--bootstrap-server", bootstrap, "--application-id", f"{query.output}-{uuid.uuid4().hex[:8]}"),
        *(part for override in overrides for part in ("--override", override)),
        "--exit-when-caught-up",
    ]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        began = _time_of_running(process)
        status = process.wait()
    ended, after = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    if status:
        raise subprocess.CalledProcessError(status, command)
    cpu_seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Used(ended - began, cpu_seconds)


def _time_of_running(process: subprocess.Popen[bytes]) -> float:
    """Return when the application's tasks first ran. Read its output to the end, so that it never blocks."""
    assert process.stdout is not None
    began: float | None = None
    for line in process.stdout:
        if began is None and msgspec.json.decode(line).get("state") == "RUNNING":
            began = time.perf_counter()
    return time.perf_counter() if began is None else began


async def rows_behind(bootstrap: str, query: Query, offset: int) -> list[tuple[Any, Any]]:
    """Return the keys and values of the query's output, from an offset to its end."""
    sinks = (node for node in query.topology().nodes.values() if isinstance(node, SinkNode))
    sink = next(node for node in sinks if node.topic == query.output)
    key_of, value_of = sink.key_serde.deserialize, sink.value_serde.deserialize
    tp, rows = TopicPartition(query.output, 0), []
    async with Client(bootstrap) as client:
        end = (await Admin(client).list_offsets({tp: "latest"}))[tp].offset
        async with BatchFetcher(client) as fetcher:
            fetcher.assign({tp: offset})
            while offset < end:
                for fetched in await fetcher.fetch():
                    for _, _, key, value, _ in fetched.records():
                        assert key is not None
                        rows.append((key_of(key), None if value is None else value_of(value)))
                    offset = fetched.next_offset
    return rows
