"""The story of the bug these tests are for: an application is killed after it wrote its counts to the
changelog and before it committed how far it had read. Started again it restores the counts, reads the same
records once more, and counts them twice. See `streams.runtime.commit.commit` for why ours does not.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_client import BatchProducer, Client
from streams import State
from streams.serdes import Json, Long
from tests.streams.support import counting
from tests.streams.support.dying import ROOT, run_until_dead
from tests.support import depth
from tests.support.logd_process import LogdProcess
from tests.support.tracebacks import assert_no_tracebacks


def start_program(log: Path, *arguments: str) -> subprocess.Popen[str]:
    with log.open("ab") as errors:
        return subprocess.Popen(
            [sys.executable, "-m", counting.__name__, *arguments],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=ROOT,
        )


async def assert_exact(bootstrap: str, prefix: str, state_dir: Path, events: list[counting.Event]) -> None:
    """Run to the end; stores and output agree with a direct computation."""
    hours, totals = counting.expected(events)
    async with counting.application(bootstrap, prefix, str(state_dir)) as app:
        async with asyncio.timeout(60):
            await app.wait_until_caught_up()
        found_hours, found_totals = counting.contents(app)
    assert found_hours == dict(hours)
    assert found_totals == totals
    written = await counting.read_last(bootstrap, f"{prefix}-totals")
    assert {key.decode(): Json(dict).deserialize(value or b"") for key, value in written.items()} == totals
    written = await counting.read_last(bootstrap, f"{prefix}-hours")
    assert sum(Long().deserialize(value or b"") for value in written.values()) == len(events)


def test_counts_are_exact_over_kills(tmp_path: Path, new_name: Callable[[str], str]) -> None:
    """Counts are exact after the application is killed at random moments."""
    seed = random.randrange(10**6)
    print("seed", seed)
    chance = random.Random(seed)
    prefix, state, log = new_name("kills"), tmp_path / "state", tmp_path / "streams.log"
    events = counting.make_events(12_000, seed=seed)
    with LogdProcess(tmp_path / "logd") as logd:
        asyncio.run(counting.prepare(logd.bootstrap, prefix, events))
        for turn in range(6):
            process = start_program(log, logd.bootstrap, prefix, str(state))
            try:
                assert process.stdout is not None
                assert process.stdout.readline() == "running\n"
                # Not a wait for a condition: the moment of the kill is what is random.
                with pytest.raises(subprocess.TimeoutExpired):
                    process.wait(chance.uniform(0.02, 0.4))
            finally:
                process.kill()
                process.communicate()
            assert_no_tracebacks(log.read_text())
            if turn == 4:
                shutil.rmtree(state)  # what is left is the changelogs
        asyncio.run(assert_exact(logd.bootstrap, prefix, state, events))
        asyncio.run(assert_exact(logd.bootstrap, prefix, tmp_path / "elsewhere", events))


@depth.deep
def test_counts_are_exact_over_kills_of_the_broker(tmp_path: Path, new_name: Callable[[str], str]) -> None:
    """The application waits for a killed broker and goes on from its position."""
    prefix = new_name("broker")
    events = counting.make_events(6000)

    async def run(logd: LogdProcess) -> None:
        await counting.prepare(logd.bootstrap, prefix, events)
        app = counting.application(logd.bootstrap, prefix, str(tmp_path / "state"), pause=5e-5)
        async with app, asyncio.timeout(90):
            for part in (1, 2):
                while app.state is not State.RUNNING or app.summary()["records_in"] < part * 1500:  # noqa: ASYNC110
                    await asyncio.sleep(0.005)
                await asyncio.to_thread(logd.kill)
                await asyncio.to_thread(logd.start)
            await app.wait_until_caught_up()
        await assert_exact(logd.bootstrap, prefix, tmp_path / "state", events)

    with LogdProcess(tmp_path / "logd") as logd:
        asyncio.run(run(logd))


@depth.deep
async def test_a_strangers_changelog_records_are_undone(
    logd: LogdProcess, tmp_path: Path, new_name: Callable[[str], str]
) -> None:
    """A member that has lost a task, and does not know, writes its last commit. The owner notices, and
    restores.
    """
    prefix = new_name("stranger")
    events = counting.make_events(3000, keys=50)
    await counting.prepare(logd.bootstrap, prefix, events)
    app = counting.application(logd.bootstrap, prefix, str(tmp_path / "state"), pause=5e-5)
    async with (
        app,
        asyncio.timeout(60),
        Client(logd.bootstrap) as client,
        BatchProducer(client) as producer,
    ):
        while app.state is not State.RUNNING or app.summary()["records_in"] < 500:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        for partition in range(counting.PARTITIONS):
            wrong = (1, b"key-1", Json(dict).serialize({"sum": -1, "seen": []}), ())
            await (await producer.send(f"{prefix}-app-totals-changelog", partition, [wrong]))
        await app.wait_until_caught_up()
        assert counting.contents(app)[1] == counting.expected(events)[1]
    await assert_exact(logd.bootstrap, prefix, tmp_path / "elsewhere", events)


EARLY = ("batch to be sent:1", "batch sent:2", "positions to be committed:1", "positions committed:1")
"""In the first commit: there is no state to be lost yet."""
LATER = ("batch sent:8", "positions to be committed:3", "positions committed:3", "a store written:2")


@depth.deep
@pytest.mark.parametrize(
    ("at", "fresh_state"), [*((at, False) for at in (*EARLY, *LATER)), *((at, True) for at in LATER)]
)
def test_counts_are_exact_when_killed_in_a_commit(
    logd: LogdProcess, tmp_path: Path, new_name: Callable[[str], str], at: str, fresh_state: bool
) -> None:
    prefix = new_name("dies")
    events = counting.make_events(3000, keys=50)
    asyncio.run(counting.prepare(logd.bootstrap, prefix, events))
    arguments = (logd.bootstrap, prefix, str(tmp_path / "a"), "commit_interval_ms=5")
    run_until_dead(counting.__name__, at, tmp_path / "log", *arguments)
    asyncio.run(assert_exact(logd.bootstrap, prefix, tmp_path / ("b" if fresh_state else "a"), events))
