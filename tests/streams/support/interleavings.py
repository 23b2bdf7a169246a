"""Instances of one application that come, go, pause and break off while records arrive, as a seed says.

Fault model: an error at any of `POINTS`, at any time, ends the instance that reaches it. After the error the
instance only releases its resources. It comes back over the state it had, over none, or not at all. Others
come, are closed, pause and go on, so that tasks move at any moment.
Processes that are killed outright are `tests.faults.streams`' to tell.

Whatever comes of that, the tables are those of one run without interruption, by `TopologyTestDriver`.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from kafka_client import Admin, BatchProducer, Client, GroupMember, NewTopic
from streams import KafkaStreams, StreamsError
from streams.serdes import Long
from streams.testing import TopologyTestDriver
from tests.faults.streams import kill_points
from tests.streams.support.counting import read_all
from tests.streams.support.interleaved import ROWS_PER_STEP, Row, Work

POINTS: dict[str, kill_points.Point] = {
    **kill_points.POINTS,
    "batch to be sent": (BatchProducer, "send_batch", False),
    "batch sent": (BatchProducer, "send_batch", True),
    "group's offsets to be sent": (GroupMember, "commit", False),
    "group's offsets sent": (GroupMember, "commit", True),
}
PARTITIONS = 3
INSTANCES_MAX = 3
STEPS = 10


class Crash(Exception):
    """Raised where a process would have been killed."""


class Interleaving:
    """`run` it: AssertionError where what comes out is not what an uninterrupted run gives."""

    def __init__(
        self, bootstrap: str, prefix: str, folder: Path, seed: int, guarantee: Any, work: Work
    ) -> None:
        self.happened: list[str] = []
        """The steps in their order, to print."""
        self._bootstrap = bootstrap
        self._prefix = prefix
        self._folder = folder
        self._random = random.Random(seed)
        self._guarantee = guarantee
        self._work = work
        self._standbys = self._random.randrange(2)
        self._rows: list[Row] = []
        self._apps: dict[str, KafkaStreams] = {}
        self._folders: set[str] = set()

    async def run(self) -> None:
        """Run all steps, and close the running instances in the end."""
        async with Client(self._bootstrap) as client, BatchProducer(client, linger_ms=0) as producer:
            names = [f"{self._prefix}-{name}" for name in (*self._work.inputs, *self._work.tables)]
            await Admin(client).create_topics([NewTopic(name, PARTITIONS, 1) for name in names])
            try:
                await self._start()
                for _ in range(STEPS):
                    await self._feed(producer, self._next_rows())
                    await self._random.choice(self._kinds())()
                await self._feed(producer, self._next_rows())
                await self._end(producer)
            finally:
                for app in self._apps.values():
                    await app.close()

    def _kinds(self) -> list[Callable[[], Any]]:
        kinds: list[Callable[[], Any]] = [self._go_on, self._crash, self._crash, self._crash, self._pause]
        if len(self._apps) < INSTANCES_MAX:
            kinds += [self._start, self._start]
        if len(self._apps) > 1:
            kinds.append(self._close)
        return kinds

    # -- what happens

    def _next_rows(self) -> list[Row]:
        first, deletes = len(self._rows), self._guarantee == "exactly_once_v2"
        return [self._work.row(self._random, first + n, deletes) for n in range(ROWS_PER_STEP)]

    async def _feed(self, producer: BatchProducer, rows: Iterable[Row]) -> None:
        for row in rows:
            self._rows.append(row)
            raw = row.key.encode()
            partition = producer.partition_for(row.topic, raw, PARTITIONS)
            value = None if row.value is None else Long().serialize(row.value)
            await producer.send(f"{self._prefix}-{row.topic}", partition, [(row.timestamp, raw, value, ())])
        await producer.flush()

    async def _start(self) -> None:
        """Over new state, or that of one that is gone."""
        free = sorted(self._folders - self._apps.keys())
        comes_back = free and self._random.random() < 0.6
        name = self._random.choice(free) if comes_back else str(len(self._folders))
        self._folders.add(name)
        self.happened.append(f"start over {name}")
        app = self._application(name)
        await app.start()
        self._apps[name] = app

    async def _close(self) -> None:
        name = self._random.choice(sorted(self._apps))
        self.happened.append(f"close {name}")
        await self._apps.pop(name).close()

    async def _pause(self) -> None:
        name = self._random.choice(sorted(self._apps))
        app = self._apps[name]
        self.happened.append(f"{'resume' if app.is_paused else 'pause'} {name}")
        (app.resume if app.is_paused else app.pause)()

    async def _go_on(self) -> None:
        """Until somebody has processed more, if anybody can."""
        before = self._processed()
        for _ in range(100):
            if self._processed() > before:
                break
            await asyncio.sleep(0.005)

    async def _crash(self) -> None:
        """At a point, if it is reached before long."""
        point, number = self._random.choice(sorted(POINTS)), self._random.randrange(1, 6)
        self.happened.append(f"crash at {point}, time {number}")
        with crashing_at(point, number):
            for _ in range(60):
                if any(app._failure is not None for app in self._apps.values()):
                    break
                await asyncio.sleep(0.005)
        for name, app in list(self._apps.items()):
            if app._failure is not None:
                self.happened.append(f"{name} ended")
                await self._apps.pop(name).close()
        if not self._apps:
            await self._start()

    def _processed(self) -> int:
        return sum(app.summary()["records_in"] for app in self._apps.values())

    # -- the end

    async def _end(self, producer: BatchProducer) -> None:
        """Process the rest with one instance, and compare all tables and stores."""
        for name in sorted(self._apps):
            with contextlib.suppress(StreamsError):
                await self._apps.pop(name).close()
        await self._start()
        (app,) = self._apps.values()
        await app.wait_until_caught_up()
        await self._feed(producer, self._work.last)
        await app.wait_until_caught_up()
        stores = {name: contents(app.stores(name)) for name in self._work.stores}
        await app.close()
        expected_tables, expected_stores = uninterrupted(self._work, self._prefix, self._rows)
        for name, serde in self._work.tables.items():
            rows = await read_all(self._bootstrap, f"{self._prefix}-{name}", partitions=PARTITIONS)
            values = [
                (key.decode(), None if value is None else serde.deserialize(value)) for key, value in rows
            ]
            self._compare(name, values, expected_tables[name])
        for name in self._work.stores:
            if self._is_exact(name):
                assert stores[name] == expected_stores[name], f"the store {name}"

    def _is_exact(self, name: str) -> bool:
        return self._guarantee == "exactly_once_v2" or name not in self._work.only_once

    def _compare(self, name: str, values: list[tuple[str, Any]], expected: dict[str, Any]) -> None:
        if not self._is_exact(name):
            return
        table = {key: value for key, value in dict(values).items() if value is not None}
        assert table == expected, f"the table {name}"
        if name == self._work.numbered:
            for key, count in expected.items():
                values_of_key = [value for each, value in values if each == key]
                assert values_of_key == list(range(1, count + 1)), f"{key}: gaps or duplicates"

    def _application(self, name: str) -> KafkaStreams:
        return KafkaStreams(
            self._work.topology(self._prefix),
            application_id=f"{self._prefix}-app",
            bootstrap_servers=self._bootstrap,
            state_dir=str(self._folder / name),
            processing_guarantee=self._guarantee,
            commit_interval_ms=15,
            poll_ms=5,
            heartbeat_interval_ms=50,
            session_timeout_ms=6000,
            transaction_timeout_ms=2000,
            num_standby_replicas=self._standbys,
            emit_interval_ms_kstreams_outer_join_spurious_results_fix=0,
            emit_interval_ms_kstreams_windowed_aggregation=0,
        )


def uninterrupted(
    work: Work, prefix: str, rows: list[Row]
) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    """Return the tables and stores of one run."""
    with TopologyTestDriver(work.topology(prefix)) as driver:
        for row in rows:
            driver.input_topic(f"{prefix}-{row.topic}").pipe_input(row.key, row.value, row.timestamp)
        tables = {
            name: driver.output_topic(f"{prefix}-{name}", key_serde=str, value_serde=serde).read_table()
            for name, serde in work.tables.items()
        }
        return tables, {name: contents([driver.store(name)]) for name in work.stores}


def contents(stores: list[Any]) -> dict[str, Any]:
    """Return the contents of a store over all tasks."""
    return {key: value for store in stores for key, value in store.all()}


@contextlib.contextmanager
def crashing_at(point: str, number: int) -> Iterator[None]:
    """Raise an error at the ``number``-th call of the point from now on."""

    def crash() -> None:
        raise Crash(point)

    owner, method, _ = POINTS[point]
    original = getattr(owner, method)
    kill_points.at_call(POINTS[point], number, crash)
    try:
        yield
    finally:
        setattr(owner, method, original)
