"""Two instances of an application, each a process: one is killed, or stands still beyond its session."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kafka_client import Admin, Client, TopicPartition
from streams import StateRestoreListener
from tests.streams.support import regrouping
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.waiting import until, wait_for

pytestmark = deep

NewName = Callable[[str], str]
SECONDS = 60.0


class Instance:
    """The program in `regrouping`, and what it has said."""

    def __init__(self, bootstrap: str, prefix: str, folder: Path, *settings: str) -> None:
        self._output = folder.with_suffix(".out")
        command = [sys.executable, "-m", regrouping.__name__, bootstrap, prefix, str(folder), *settings]
        with self._output.open("wb") as output:
            root = Path(regrouping.__file__).parents[3]
            self.process = subprocess.Popen(command, stdout=output, cwd=root)

    @property
    def records(self) -> int:
        """How many it has taken."""
        return self._output.read_text().count("record\n")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(SECONDS)


@contextmanager
def started(instance: Instance) -> Iterator[Instance]:
    try:
        yield instance
    finally:
        instance.kill()


def wait_until_written(bootstrap: str, prefix: str, events: list[regrouping.Event]) -> None:
    """Until the last of every key in the output topics is what the oracle says."""
    expected = regrouping.expected(events)
    wait_for(lambda: asyncio.run(regrouping.written(bootstrap, prefix)) == expected, SECONDS)


def assert_restored(bootstrap: str, prefix: str, folder: Path, events: list[regrouping.Event]) -> None:
    """Stores made of the changelogs alone agree with the oracle."""

    async def run() -> None:
        async with regrouping.application(bootstrap, prefix, str(folder), tells=False) as app:
            async with asyncio.timeout(SECONDS):
                await app.wait_until_caught_up()
            counts = {key: count for store in app.stores("counts") for key, count in store.all()}  # type: ignore[attr-defined]
            groups = {key: value["seen"] for store in app.stores("groups") for key, value in store.all()}  # type: ignore[attr-defined]
        assert (counts, groups) == regrouping.expected(events)

    asyncio.run(run())


@pytest.mark.timeout(5 * SECONDS)
def test_the_other_takes_over_from_a_killed_one(logd: LogdProcess, tmp_path: Path, new_name: NewName) -> None:
    """Two instances share the tasks on both sides of the repartition topic; one is killed midway."""
    prefix, events = new_name("killed"), regrouping.make_events(6000)
    asyncio.run(regrouping.prepare(logd.bootstrap, prefix))
    with (
        started(Instance(logd.bootstrap, prefix, tmp_path / "first")) as first,
        started(Instance(logd.bootstrap, prefix, tmp_path / "second")) as second,
    ):
        asyncio.run(regrouping.send(logd.bootstrap, prefix, events[:1000]))
        wait_for(lambda: asyncio.run(has_members(logd.bootstrap, f"{prefix}-app", 2)), SECONDS)
        records = first.records
        asyncio.run(regrouping.send(logd.bootstrap, prefix, events[1000:]))
        wait_for(lambda: first.records > records and first.records + second.records >= 2000, SECONDS)
        first.kill()
        wait_until_written(logd.bootstrap, prefix, events)
        second.process.send_signal(signal.SIGTERM)
        assert second.process.wait(SECONDS) == 0
    assert_restored(logd.bootstrap, prefix, tmp_path / "elsewhere", events)


@pytest.mark.timeout(5 * SECONDS)
def test_a_standby_takes_over_from_a_killed_one(logd: LogdProcess, tmp_path: Path, new_name: NewName) -> None:
    """The standby restores what was committed since its last read, and no more."""
    prefix, events = new_name("replica"), regrouping.make_events(6000)
    asyncio.run(regrouping.prepare(logd.bootstrap, prefix))
    listener = Totals()

    async def case() -> None:
        second = regrouping.application(
            logd.bootstrap, prefix, str(tmp_path / "second"), tells=False, num_standby_replicas=1
        )
        second.add_restore_listener(listener)
        settings = (logd.bootstrap, prefix, tmp_path / "first", "num_standby_replicas=1")
        with started(Instance(*settings)) as first:
            async with second, asyncio.timeout(SECONDS):
                await until(lambda: len(second.tasks) == len(second.standby_tasks) == regrouping.PARTITIONS)
                await regrouping.send(logd.bootstrap, prefix, events[:5000])
                await until(lambda: first.records >= 500)
                standbys = second._instance.standbys
                await until(lambda: not any(each.remaining for each in standbys.tasks.values()))
                await regrouping.send(logd.bootstrap, prefix, events[5000:])
                partitions = {f"{id.partition}" for id in second.standby_tasks}
                listener.totals.clear()
                first.kill()
                await until(lambda: len(second.tasks) == 2 * regrouping.PARTITIONS)
                await second.wait_until_caught_up()
        assert {str(tp.partition) for tp in listener.totals} == partitions
        sizes = await changelog_ends(logd.bootstrap, listener.totals)
        assert sum(listener.totals.values()) < sum(sizes.values()) / 2

    asyncio.run(case())
    wait_until_written(logd.bootstrap, prefix, events)
    assert_restored(logd.bootstrap, prefix, tmp_path / "elsewhere", events)


class Totals(StateRestoreListener):
    """How many records each changelog gave."""

    def __init__(self) -> None:
        self.totals: dict[TopicPartition, int] = {}

    def on_restore_end(self, tp: TopicPartition, store: str, total_restored: int) -> None:
        self.totals[tp] = total_restored


async def changelog_ends(bootstrap: str, tps: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Return the end offsets of changelog partitions."""
    async with Client(bootstrap) as client:
        listed = await Admin(client).list_offsets(dict.fromkeys(tps, "latest"))
    return {tp: each.offset for tp, each in listed.items()}


async def has_members(bootstrap: str, group: str, count: int) -> bool:
    """Return True if the group is stable and has so many members."""
    async with Client(bootstrap) as client:
        described = (await Admin(client).describe_groups([group]))[group]
    return described.state == "Stable" and len(described.members) == count


async def ends(bootstrap: str, prefix: str) -> dict[str, int]:
    """Return the end offsets of all of the application's topics."""
    async with Client(bootstrap) as client:
        admin = Admin(client)
        names = [name for name in await admin.list_topics() if name.startswith(prefix)]
        tps = (await client.metadata(names)).partitions(names)
        listed = await admin.list_offsets(dict.fromkeys(tps, "latest"))
        return {str(tp): end.offset for tp, end in listed.items()}


@pytest.mark.timeout(5 * SECONDS)
def test_one_that_stood_still_writes_nothing(logd: LogdProcess, tmp_path: Path, new_name: NewName) -> None:
    """SIGSTOP beyond its session, as of a suspended laptop: others have its tasks, and have written newer
    results than those it wakes up with and means to commit.
    """
    prefix, events = new_name("still"), regrouping.make_events(500)
    asyncio.run(regrouping.prepare(logd.bootstrap, prefix))
    asyncio.run(regrouping.send(logd.bootstrap, prefix, events[:200]))
    # It commits at its end, and no heartbeat comes to find out before.
    patient = ("commit_interval_ms=3600000", "session_timeout_ms=10000", "heartbeat_interval_ms=3600000")

    def sent_on() -> int:
        end_offsets = asyncio.run(ends(logd.bootstrap, prefix))
        return sum(end for tp, end in end_offsets.items() if "-repartition-" in tp)

    def results() -> dict[str, int]:
        end_offsets = asyncio.run(ends(logd.bootstrap, prefix))
        return {tp: end for tp, end in end_offsets.items() if "-repartition-" not in tp}

    with started(Instance(logd.bootstrap, prefix, tmp_path / "first", *patient)) as first:
        wait_for(lambda: sent_on() >= 200, SECONDS)
        os.kill(first.process.pid, signal.SIGSTOP)
        asyncio.run(regrouping.send(logd.bootstrap, prefix, events[200:]))
        with started(Instance(logd.bootstrap, prefix, tmp_path / "second")) as second:
            wait_until_written(logd.bootstrap, prefix, events)
            second.process.send_signal(signal.SIGTERM)
            assert second.process.wait(SECONDS) == 0
        before = results()
        os.kill(first.process.pid, signal.SIGTERM)
        os.kill(first.process.pid, signal.SIGCONT)
        first.process.wait(SECONDS)
        assert results() == before
    assert_restored(logd.bootstrap, prefix, tmp_path / "elsewhere", events)
