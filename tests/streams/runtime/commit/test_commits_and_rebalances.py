"""The group rebalances while a commit is under way: nothing is lost, and nothing counts twice.

Instances share an event loop and a broker. The commit is held up before the coordinator takes its offsets.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kafka_client import Client, GroupMember
from kafka_client.producer.transaction_manager import TransactionManager
from streams import KafkaStreams, State
from tests.faults.streams import summing
from tests.faults.streams.audit import audit, read
from tests.streams.runtime.commit.test_exactly_once import PARTITIONS, feed
from tests.streams.support.running import NewName
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.waiting import until

GUARANTEES = ["at_least_once", "exactly_once_v2"]
TASKS = 2 * PARTITIONS
STORES = ("keys", "counts", "sums")


def instance(bootstrap: str, prefix: str, folder: Path, **settings: Any) -> KafkaStreams:
    return KafkaStreams(
        summing.topology(prefix),
        application_id=f"{prefix}-app",
        bootstrap_servers=bootstrap,
        state_dir=str(folder),
        **{
            "poll_ms": 20,
            "commit_interval_ms": 20,
            "heartbeat_interval_ms": 50,
            "session_timeout_ms": 20_000,
            **settings,
        },
    )


class HeldUp:
    """The commits of one application, whose offsets wait for `go_on`. `waiting`: how many do."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.app: KafkaStreams | None = None
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.waiting = 0
        at_least_once, exactly_once = GroupMember.commit, TransactionManager.send_offsets

        async def commit(member: GroupMember, *args: Any) -> None:
            if self.app is not None and member is self.app._instance.member:
                await self._wait()
            await at_least_once(member, *args)

        async def send_offsets(manager: TransactionManager, *args: Any) -> None:
            producer: Any = None if self.app is None else self.app._instance.producer
            if manager is getattr(getattr(producer, "_producer", None), "_transactions", None):
                await self._wait()
            await exactly_once(manager, *args)

        monkeypatch.setattr(GroupMember, "commit", commit)
        monkeypatch.setattr(TransactionManager, "send_offsets", send_offsets)

    async def _wait(self) -> None:
        self.waiting += 1
        await self.go_on.wait()
        self.waiting -= 1


async def exact(bootstrap: str, prefix: str, stores: int, *apps: KafkaStreams) -> None:
    """Wait until all is processed and committed, and check that the first stores count each record once."""

    async def level() -> bool:
        for app in apps:
            await app.wait_until_caught_up()
        return sum(len(app.tasks) for app in apps) == TASKS

    while not await level():  # noqa: ASYNC110 - tasks may be on their way from one to the other
        await asyncio.sleep(0.01)
    for name, expected in list(zip(STORES, await fed(bootstrap, prefix), strict=True))[:stores]:
        totals: dict[str, int] = {}
        for app in apps:
            for store in app.stores(name):
                totals.update(store.all())  # type: ignore[attr-defined]
        assert totals == expected, name


async def fed(bootstrap: str, prefix: str) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    async with Client(bootstrap) as client:
        numbers = await read(client, f"{prefix}-{summing.NUMBERS}", PARTITIONS)
    return summing.sums(row for each in numbers for row in each)


@deep
@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("too_long", [False, True], ids=["in time", "too late"])
async def test_a_rebalance_while_a_commit_is_under_way(
    logd: LogdProcess,
    tmp_path: Path,
    new_name: NewName,
    monkeypatch: pytest.MonkeyPatch,
    guarantee: str,
    too_long: bool,
) -> None:
    """A rebalance waits for the commit, but only as long as a revoke may take. After that the commit may be
    refused, and the tasks go on from there.
    """
    prefix = new_name("under-way")
    settings = {
        "processing_guarantee": guarantee,
        "num_standby_replicas": 1,
        "max_poll_interval_ms": 700 if too_long else 30_000,
    }
    hold_up = HeldUp(monkeypatch)
    # At least once, what comes of a refused commit is written again to the repartition topic.
    stores = 1 if too_long and guarantee == "at_least_once" else len(STORES)
    await feed(logd.bootstrap, prefix, range(200))
    async with instance(logd.bootstrap, prefix, tmp_path / "1", **settings) as first:
        await first.wait_until_caught_up()
        generation, records = first._instance.member.generation, first.summary()["records_in"]
        hold_up.app = first
        hold_up.go_on.clear()
        await feed(logd.bootstrap, prefix, range(200, 400))
        await until(lambda: hold_up.waiting > 0)
        second = instance(logd.bootstrap, prefix, tmp_path / "2", **settings)
        async with second:
            await until(lambda: first._instance.member.is_joining)
            await feed(logd.bootstrap, prefix, range(400, 600))
            # The input, and what comes of it behind the repartition topic if readers may see it already.
            await until(lambda: first.summary()["records_in"] >= records + 400)
            if too_long:
                await until(lambda: first._instance.member.generation != generation)
            else:
                assert first._instance.member.generation == generation, "the group waits"
            hold_up.go_on.set()
            await until(lambda: bool(first.tasks and second.tasks))
            if not too_long:
                assert first._instance.member.generation > generation
            await exact(logd.bootstrap, prefix, stores, first, second)
        await until(lambda: len(first.tasks) == TASKS and first.state is State.RUNNING)
        await exact(logd.bootstrap, prefix, stores, first)
    if guarantee == "exactly_once_v2":
        async with Client(logd.bootstrap) as client:
            await audit(client, prefix, PARTITIONS)
