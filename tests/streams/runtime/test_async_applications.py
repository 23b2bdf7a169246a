"""Applications with asynchronous nodes: killed, rebalanced and revoked while coroutines are in flight."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kafka_client import Client
from streams import KafkaStreams, StreamsBuilder
from tests.faults.streams import summing
from tests.faults.streams.audit import audit, read
from tests.faults.streams.instance import Instance
from tests.streams.runtime.commit.test_exactly_once import PARTITIONS, PLACE, SECONDS, feed
from tests.streams.support.running import NewName, make_topics, produce, run, start
from tests.support import depth
from tests.support.logd_process import LogdProcess
from tests.support.waiting import until, wait_for

LATENCY_MS = 30
NODE = "KSTREAM-ASYNC-0000000001"


def instance(bootstrap: str, prefix: str, folder: Path, **settings: Any) -> KafkaStreams:
    return KafkaStreams(
        summing.topology(prefix, LATENCY_MS),
        application_id=f"{prefix}-app",
        bootstrap_servers=bootstrap,
        state_dir=str(folder),
        **{
            "processing_guarantee": "exactly_once_v2",
            "poll_ms": 20,
            "heartbeat_interval_ms": 50,
            "session_timeout_ms": 3000,
            **settings,
        },
    )


async def audited(bootstrap: str, prefix: str) -> None:
    async with Client(bootstrap) as client:
        await audit(client, prefix, PARTITIONS)


@depth.deep
@pytest.mark.parametrize(
    "point",
    depth.first(
        1,
        [
            "records processed:60",
            "output sent:20",
            "stores drained:4",
            "offsets sent:3",
            "transaction ended:3",
        ],
    ),
)
async def test_killed_while_records_are_in_flight(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, point: str
) -> None:
    """The next process processes again what was in flight, and readers see each result once."""
    prefix = new_name("async-killed")
    await feed(logd.bootstrap, prefix, range(600))
    settings = {"commit.interval.ms": 10, "poll.ms": 2, **PLACE}
    # Tasks process in three partitions: by then some results have come, and others are in flight.
    environment = {summing.KILL_AT: point, summing.LATENCY_MS: str(LATENCY_MS)}
    killed = Instance(
        logd.bootstrap, tmp_path / "killed", prefix=prefix, settings=settings, environment=environment
    )
    try:
        wait_for(lambda: not killed.is_alive, SECONDS)
        assert killed.wait() == -signal.SIGKILL, killed.log
    finally:
        killed.kill()
    await feed(logd.bootstrap, prefix, range(600, 700))
    async with instance(logd.bootstrap, prefix, tmp_path / "killed", group_instance_id="one") as app:
        await app.wait_until_caught_up()
    await audited(logd.bootstrap, prefix)


@depth.deep
async def test_rebalanced_while_records_are_in_flight(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    """Records in flight are drained and committed when a second instance joins and when the first leaves."""
    prefix = new_name("async-rebalanced")
    await feed(logd.bootstrap, prefix, range(400))
    first = instance(logd.bootstrap, prefix, tmp_path / "1")
    async with instance(logd.bootstrap, prefix, tmp_path / "2") as second:
        async with first:
            await until(lambda: first._instance.loop.statistics()["calls"] > 0)
            await until(lambda: len(first.tasks) == PARTITIONS == len(second.tasks))
            await feed(logd.bootstrap, prefix, range(400, 700))
            await until(lambda: first._instance.loop.statistics()["calls"] > 0)
        assert first._instance.loop.statistics()["calls"] == 0
        await until(lambda: len(second.tasks) == 2 * PARTITIONS)
        await second.wait_until_caught_up()
    await audited(logd.bootstrap, prefix)


class Gate:
    """A coroutine whose calls wait for `opened`. ``most``: how many were under way at one time."""

    def __init__(self) -> None:
        self.opened = asyncio.Event()
        self.waiting = self.most = self.cancelled = 0

    async def __call__(self, key: str, value: int) -> int:
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        try:
            if key == "held":
                await self.opened.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.waiting -= 1
        return value


def gated(name: str, gate: Any, **how: Any) -> Any:
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    builder.stream(f"{name}-in").map_values_async(gate, **how).to(f"{name}-out", value_serde=int)
    return builder.build()


def row(key: str, value: int) -> tuple[bytes, bytes]:
    return key.encode(), value.to_bytes(8, "big")


async def written(bootstrap: str, name: str, partitions: int = 1) -> list[tuple[str, int]]:
    async with Client(bootstrap) as client:
        return [each for rows in await read(client, f"{name}-out", partitions) for each in rows]


@depth.deep
@pytest.mark.parametrize("guarantee", depth.first(1, ["exactly_once_v2", "at_least_once"]))
def test_what_is_not_over_at_the_end_of_a_revoke_is_given_up(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, caplog: pytest.LogCaptureFixture, guarantee: str
) -> None:
    """A call that hangs is named in the log. Only the next owner of the task processes its record."""
    name = new_name("async-revoked")
    settings: Any = {"processing_guarantee": guarantee, "max_poll_interval_ms": 1000}

    async def case() -> None:
        blocked, free = Gate(), Gate()
        free.opened.set()
        await make_topics(logd.bootstrap, **{f"{name}-in": 1, f"{name}-out": 1})
        await produce(logd.bootstrap, f"{name}-in", row("held", 1), row("free", 2), row("held", 3))
        app = start(gated(name, blocked), logd.bootstrap, name, tmp_path / "1", **settings)
        async with app:
            await until(lambda: blocked.waiting == 1)
            async with asyncio.timeout(30):
                await app.close()
            assert blocked.cancelled == 1
        blocked.opened.set()
        async with start(gated(name, free), logd.bootstrap, name, tmp_path / "2", **settings) as other:
            await other.wait_until_caught_up()
        if guarantee == "exactly_once_v2":
            output = await written(logd.bootstrap, name)
            assert sorted(output) == [("free", 2), ("held", 1), ("held", 3)]
            assert output.index(("held", 1)) < output.index(("held", 3))

    with caplog.at_level(logging.WARNING):
        run(case)
    assert f"node {NODE} ({__file__}, line " in caplog.text, caplog.text


@depth.deep
@pytest.mark.parametrize("blocks", [False, True], ids=["beside others", "with the worker waiting"])
def test_a_coroutine_that_hangs_costs_the_membership_and_is_named(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, caplog: pytest.LogCaptureFixture, blocks: bool
) -> None:
    """A coroutine that hangs is named, also while the worker waits inside a record that makes more calls than
    allowed.
    """
    name = new_name("async-hangs")

    async def case() -> None:
        gate = Gate()
        await make_topics(logd.bootstrap, **{f"{name}-in": 1, f"{name}-out": 1})
        await produce(logd.bootstrap, f"{name}-in", row("held", 1), row("free", 2))
        builder = StreamsBuilder(key_serde=str, value_serde=int)
        twice = builder.stream(f"{name}-in").flat_map_values(lambda value: [value, 10 * value])
        twice.map_values_async(gate, name="gate", max_in_flight=1 if blocks else 10).to(f"{name}-out")
        settings: Any = {"processing_guarantee": "exactly_once_v2", "max_poll_interval_ms": 300}
        async with start(builder.build(), logd.bootstrap, name, tmp_path, **settings) as app:
            await until(lambda: gate.cancelled > 0)
            gate.opened.set()
            await app.wait_until_caught_up()
        assert sorted(await written(logd.bootstrap, name)) == [
            ("free", 2),
            ("free", 20),
            ("held", 1),
            ("held", 10),
        ]

    with caplog.at_level(logging.WARNING):
        run(case)
    expected = f"node gate ({__file__}, line "
    assert any(
        expected in record.getMessage() and "max.poll.interval.ms (300 ms)" in record.getMessage()
        for record in caplog.records
    ), caplog.text


@depth.deep
def test_a_call_that_outlasts_a_transaction_is_given_up_and_named(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, caplog: pytest.LogCaptureFixture
) -> None:
    name = new_name("async-outlasts")

    async def case() -> None:
        gate = Gate()
        await make_topics(logd.bootstrap, **{f"{name}-in": 1, f"{name}-out": 1})
        await produce(logd.bootstrap, f"{name}-in", row("free", 1), row("held", 2), row("free", 3))
        settings: Any = {"processing_guarantee": "exactly_once_v2", "transaction_timeout_ms": 1000}
        async with start(gated(name, gate), logd.bootstrap, name, tmp_path, **settings) as app:
            await until(lambda: gate.cancelled > 0)
            gate.opened.set()
            await app.wait_until_caught_up()
        assert sorted(await written(logd.bootstrap, name)) == [("free", 1), ("free", 3), ("held", 2)]

    with caplog.at_level(logging.WARNING):
        run(case)
    assert f"given up: node {NODE} ({__file__}, line " in caplog.text, caplog.text


async def test_a_partition_that_is_full_waits_while_others_go_on(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    name = new_name("async-full")
    entered: list[str] = []
    gate = Gate()

    @asynccontextmanager
    async def session() -> AsyncIterator[Gate]:
        entered.append("entered")
        yield gate
        entered.append("left")

    async def through(key: str, value: int, session: Gate) -> int:
        return await session(key, value)

    await make_topics(logd.bootstrap, **{f"{name}-in": 2, f"{name}-out": 1})
    await produce(logd.bootstrap, f"{name}-in", *(row("held", n) for n in range(40)))
    await produce(logd.bootstrap, f"{name}-in", *(row("free", n) for n in range(100)), partition=1)
    topology = gated(name, through, max_in_flight=5, ordered="none", context=session)
    settings: Any = {"commit_interval_ms": 60_000}
    async with start(topology, logd.bootstrap, name, tmp_path, **settings) as app:
        await until(lambda: app.summary()["records_out"] == 100)
        assert app.summary()["records_in"] == 105
        assert gate.waiting == 5
        app._instance.loop.request_commit()  # It waits for the five, and so does the partition.
        gate.opened.set()
        await app.wait_until_caught_up()
        assert gate.most <= 10
        assert entered == ["entered"]
    assert entered == ["entered", "left"]
    assert len(await written(logd.bootstrap, name)) == 140
