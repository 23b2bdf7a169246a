"""Exactly once under kills: the process of ``millstream streams run`` is killed at each point of its commits;
then sums are exact, and readers of committed records find nothing twice and nothing missing.

RocksDB has written files by then, and one of the stores is on the disk after each write: what it has there is
never ahead of the transaction, and all but the last of it need not be restored.

`tests.faults.streams.random_kills` does it to three processes, for as long as you like.
"""

from __future__ import annotations

import asyncio
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from kafka_client import BatchProducer, Client, TopicPartition
from streams import KafkaStreams, StateRestoreListener
from tests.faults.streams import summing
from tests.faults.streams.audit import audit, last, read
from tests.faults.streams.instance import Instance
from tests.faults.streams.kill_points import POINTS
from tests.support import depth, java
from tests.support.apache_kafka import ApacheKafka
from tests.support.logd_process import LogdProcess
from tests.support.tracebacks import assert_no_tracebacks
from tests.support.waiting import wait_for

PARTITIONS = 3
SECONDS = 60.0
PLACE = {"group.instance.id": "one", "transaction.timeout.ms": 1000}
"""Settings by which another process gets the input partitions of a killed one at once, and its transactions
soon.
"""
SMALL = {"buffered.records.per.partition": 50, "rocksdb.write.buffer.bytes": 1 << 20}
LARGE = {summing.PADDING: "4000", summing.FLUSHED: "sums"}
"""With these, commits are of few records, and RocksDB writes files after every few of them."""
COMMITS = 12
FIRST = "next transaction begun"
NewName = Callable[[str], str]


async def feed(bootstrap: str, prefix: str, numbers: range) -> None:
    """Write these numbers; the topics are made if they begin at 0."""
    topic, now = f"{prefix}-{summing.NUMBERS}", int(time.time() * 1000)
    async with Client(bootstrap) as client:
        if numbers.start == 0:
            await summing.prepare(client, prefix, PARTITIONS)
        async with BatchProducer(client) as producer:
            partitions: dict[int, list[Any]] = {}
            for number in numbers:
                key = summing.row(number)[0].encode()
                record = (now, key, number.to_bytes(8, "big"), ())
                partitions.setdefault(producer.partition_for(topic, key, PARTITIONS), []).append(record)
            for partition, records in partitions.items():
                await producer.send(topic, partition, records)


def application(bootstrap: str, prefix: str, state_dir: Path, **settings: Any) -> KafkaStreams:
    return KafkaStreams(
        summing.topology(prefix),
        application_id=f"{prefix}-app",
        bootstrap_servers=bootstrap,
        state_dir=str(state_dir),
        **{
            "processing_guarantee": "exactly_once_v2",
            "poll_ms": 20,
            "session_timeout_ms": 3000,
            "group_instance_id": "one",
            **settings,
        },
    )


class Restores(StateRestoreListener):
    """``offsets``: of all changelogs, markers among them; ``records``: those of them that were applied."""

    def __init__(self) -> None:
        self.offsets = self.records = 0

    def on_restore_start(
        self, tp: TopicPartition, store: str, starting_offset: int, ending_offset: int
    ) -> None:
        self.offsets += ending_offset

    def on_restore_end(self, tp: TopicPartition, store: str, total_restored: int) -> None:
        self.records += total_restored


async def run_to_the_end(bootstrap: str, prefix: str, state_dir: Path, **settings: Any) -> Restores:
    """Process all input, check that stores and outputs are exact, and return what was restored."""
    restores = Restores()
    app = application(bootstrap, prefix, state_dir, **settings)
    app.add_restore_listener(restores)
    async with app:
        async with asyncio.timeout(SECONDS):
            await app.wait_until_caught_up()
        stores = [
            {key: value for store in app.stores(name) for key, value in store.all()}  # type: ignore[attr-defined]
            for name in ("keys", "counts", "sums")
        ]
    async with Client(bootstrap) as client:
        numbers = await read(client, f"{prefix}-{summing.NUMBERS}", PARTITIONS)
        assert stores == list(summing.sums(row for each in numbers for row in each))
        await audit(client, prefix, PARTITIONS)
    return restores


@contextmanager
def started(*arguments: Any, **keywords: Any) -> Iterator[Instance]:
    instance = Instance(*arguments, **keywords)
    try:
        yield instance
    finally:
        instance.kill()


def killed_at(bootstrap: str, prefix: str, folder: Path, point: str, **environment: str) -> None:
    """Run a process that kills itself after `COMMITS` commits, with work before and after."""
    asyncio.run(feed(bootstrap, prefix, range(900)))
    settings = {"commit.interval.ms": 10, "poll.ms": 2, **SMALL, **PLACE}
    environment = {summing.KILL_AT: f"{point}:2:{COMMITS}", **LARGE, **environment}
    with started(bootstrap, folder, prefix=prefix, settings=settings, environment=environment) as killed:
        wait_for(lambda: killed.states["RUNNING"] > 0 or not killed.is_alive, SECONDS)
        fed = 900
        while killed.is_alive:
            asyncio.run(feed(bootstrap, prefix, range(fed, fed + 100)))
            fed += 100
            assert fed < 100_000, f"{point} is never reached: {killed.log}"
        assert killed.wait() == -signal.SIGKILL
    assert_no_tracebacks(killed.log)
    asyncio.run(feed(bootstrap, prefix, range(fed, fed + 100)))


@depth.deep
def test_who_waits_for_the_end_does_not_wait_for_the_next_commit(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    """Waiting for the end forces a commit. Records of a repartition topic can be read once they are
    committed, which would be in an hour.
    """
    prefix = new_name("seldom")
    asyncio.run(feed(logd.bootstrap, prefix, range(300)))
    seldom = {"commit_interval_ms": 3_600_000, "transaction_timeout_ms": 900_000}
    asyncio.run(run_to_the_end(logd.bootstrap, prefix, tmp_path, **seldom))


@pytest.mark.parametrize(
    ("point", "fresh_state"),
    depth.first(1, [(FIRST, False), *((each, each == "stores drained") for each in POINTS if each != FIRST)]),
)
def test_killed_at_a_point_of_a_commit(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, point: str, fresh_state: bool
) -> None:
    prefix = new_name("killed-at")
    killed_at(logd.bootstrap, prefix, tmp_path / "killed", point)
    if fresh_state:
        shutil.rmtree(tmp_path / "killed")
    tail = asyncio.run(run_to_the_end(logd.bootstrap, prefix, tmp_path / "killed"))
    everything = asyncio.run(run_to_the_end(logd.bootstrap, prefix, tmp_path / "elsewhere"))
    assert fresh_state or 0 < tail.records < tail.offsets / 2
    assert everything.records > everything.offsets / 2


@depth.deep
def test_state_ahead_of_the_transaction_is_found(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    prefix = new_name("ahead")
    killed_at(logd.bootstrap, prefix, tmp_path, "offsets sent", **{summing.PLANTED: "yes"})
    with pytest.raises(AssertionError):
        asyncio.run(run_to_the_end(logd.bootstrap, prefix, tmp_path))


@java.needs_kafka
def test_killed_at_points_of_a_commit_on_apache_kafka(tmp_path: Path) -> None:
    with ApacheKafka(tmp_path / "kafka", {"group.min.session.timeout.ms": 500}) as kafka:
        for number, point in enumerate(("offsets sent", "transaction ended")):
            prefix = f"killed-at-{number}"
            killed_at(kafka.bootstrap, prefix, tmp_path / prefix, point)
            tail = asyncio.run(run_to_the_end(kafka.bootstrap, prefix, tmp_path / prefix))
            assert 0 < tail.records < tail.offsets / 2
            asyncio.run(run_to_the_end(kafka.bootstrap, prefix, tmp_path / "elsewhere"))


@depth.deep
@pytest.mark.timeout(5 * SECONDS)
def test_the_other_takes_over_from_a_killed_one(logd: LogdProcess, tmp_path: Path, new_name: NewName) -> None:
    """Its open transaction is in the way until it is aborted by its age; nothing of it is ever seen."""
    prefix = new_name("killed")
    asyncio.run(feed(logd.bootstrap, prefix, range(2000)))
    settings = {"transaction.timeout.ms": 3000}
    with (
        started(logd.bootstrap, tmp_path / "first", prefix=prefix, settings=settings) as first,
        started(logd.bootstrap, tmp_path / "second", prefix=prefix, settings=settings) as second,
    ):
        fed = 2000
        while not (first.records_in and second.records_in and fed > 4000):
            asyncio.run(feed(logd.bootstrap, prefix, range(fed, fed + 200)))
            fed += 200
        first.kill()
        asyncio.run(feed(logd.bootstrap, prefix, range(fed, fed + 2000)))
        expected = summing.sums(map(summing.row, range(fed + 2000)))[2]

        async def written() -> dict[str, int]:
            async with Client(logd.bootstrap) as client:
                return last(await read(client, f"{prefix}-{summing.SUMS}", PARTITIONS))

        wait_for(lambda: asyncio.run(written()) == expected, SECONDS)
        second.send(signal.SIGTERM)
        assert second.wait() == 0, second.log
    asyncio.run(run_to_the_end(logd.bootstrap, prefix, tmp_path / "elsewhere"))


@depth.deep
@pytest.mark.timeout(5 * SECONDS)
def test_one_joins_and_one_is_killed_while_standbys_keep_up(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    """Tasks go to the third with a commit before, and from the killed one to a standby without any."""
    prefix = new_name("standbys")
    settings = {"transaction.timeout.ms": 3000, "num.standby.replicas": 1, "commit.interval.ms": 20}
    fed = 0

    def feed_until(reached: Callable[[], bool]) -> None:
        nonlocal fed
        while fed == 0 or not reached():
            asyncio.run(feed(logd.bootstrap, prefix, range(fed, fed + 200)))
            fed += 200
            assert fed < 200_000

    feed_until(lambda: True)
    with ExitStack() as stack:

        def start(name: str) -> Instance:
            context = started(logd.bootstrap, tmp_path / name, prefix=prefix, settings=settings)
            return stack.enter_context(context)

        first, second = start("1"), start("2")
        feed_until(lambda: bool(first.tasks and second.tasks and first.standby_tasks))
        third = start("3")
        feed_until(lambda: bool(third.tasks and third.records_in))
        fed_before = fed
        first.kill()
        feed_until(lambda: len({*second.tasks, *third.tasks}) == 2 * PARTITIONS and fed > fed_before + 1000)
        expected = summing.sums(map(summing.row, range(fed)))[2]

        async def written() -> dict[str, int]:
            async with Client(logd.bootstrap) as client:
                return last(await read(client, f"{prefix}-{summing.SUMS}", PARTITIONS))

        wait_for(lambda: asyncio.run(written()) == expected, SECONDS)
        for each in (second, third):
            each.send(signal.SIGTERM)
        for each in (second, third):
            assert each.wait() == 0, each.log
            assert_no_tracebacks(each.log)
    for folder in ("1", "elsewhere"):
        asyncio.run(run_to_the_end(logd.bootstrap, prefix, tmp_path / folder))


@depth.deep
@pytest.mark.parametrize(
    "guarantees",
    [
        ("at_least_once", "exactly_once_v2", "at_least_once"),
        pytest.param(("exactly_once_v2", "at_least_once", "exactly_once_v2"), marks=depth.deep),
    ],
    ids="-".join,
)
async def test_the_guarantee_may_change_over_existing_state(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, guarantees: tuple[str, ...]
) -> None:
    """State is exact after a change of guarantee, both with local state and restored from changelogs with
    markers and without.
    """
    prefix = new_name("switched")
    for number, guarantee in enumerate(guarantees):
        await feed(logd.bootstrap, prefix, range(number * 500, number * 500 + 500))
        for folder in ("kept", f"fresh-{number}"):
            await run_to_the_end(
                logd.bootstrap,
                prefix,
                tmp_path / folder,
                processing_guarantee=guarantee,
                commit_interval_ms=20,
            )
