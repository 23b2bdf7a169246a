"""`millstream zookeeper`: an ensemble that kazoo works with, loses a server, and begins again."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from millstream.terminal.status import Status
from millstream.zookeeper.ensemble import Ensemble
from tests.millstream.invoking import invoke
from tests.support.depth import deep
from tests.support.waiting import wait_for

pytestmark = pytest.mark.skipif(
    shutil.which("java") is None or find_spec("pyspark") is None,
    reason="ZooKeeper needs Java and PySpark's jars",
)
SECONDS = 100.0
TICK_MS = 500


@contextmanager
def kazoo(connect_string: str) -> Iterator[KazooClient]:
    client = KazooClient(connect_string, timeout=10.0)
    client.start(timeout=SECONDS)
    try:
        yield client
    finally:
        client.stop()
        client.close()


@contextmanager
def started(*options: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run the command and yield it with its connect string."""
    process = subprocess.Popen(
        [sys.executable, "-m", "millstream", "zookeeper", "--tick-time", str(TICK_MS), *map(str, options)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        ready = process.stdout.readline()
        assert ready.startswith("ZooKeeper ready at "), process.communicate(timeout=SECONDS)
        yield process, ready.removeprefix("ZooKeeper ready at ").strip()
        process.terminate()
        process.communicate(timeout=SECONDS)
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdout, process.stderr):
            assert pipe is not None
            pipe.close()


@deep
def test_a_folder_is_gone_on_with(tmp_path: Path) -> None:
    with started("--folder", tmp_path) as (_, first), kazoo(first) as client:
        client.create("/brokers/ids", b"x", makepath=True)
    with started("--folder", tmp_path) as (_, second), kazoo(second) as client:
        assert client.get("/brokers/ids")[0] == b"x"
    assert first == second
    refused = invoke("zookeeper", "--folder", tmp_path, "--nodes", 3)
    assert refused.exit_code == Status.USAGE
    assert "holds an ensemble of 1" in refused.stderr


@deep
def test_servers_end_with_the_command_that_is_killed(tmp_path: Path) -> None:
    with started("--folder", tmp_path) as (process, _):
        (pid,) = children(process.pid)
        os.kill(pid, signal.SIGSTOP)
        process.kill()
        wait_for(lambda: not Path(f"/proc/{pid}").exists())


@deep
def test_an_ensemble_goes_on_without_its_leader(tmp_path: Path) -> None:
    with Ensemble(tmp_path, 3, tick_ms=TICK_MS) as ensemble:
        modes = [state.mode for server in ensemble.servers if (state := server.state()) is not None]
        assert sorted(modes) == ["follower", "follower", "leader"]
        leader = ensemble.servers[modes.index("leader")]
        others = [server for server in ensemble.servers if server is not leader]
        with kazoo(others[0].address) as client:
            client.create("/a", b"1")
        leader.kill()

        def elected() -> bool:
            return sorted(state.mode for each in others if (state := each.state())) == ["follower", "leader"]

        wait_for(elected)
        with kazoo(others[1].address) as client:
            assert client.get("/a")[0] == b"1"
            client.set("/a", b"2")
        leader.start()
        wait_for(lambda: leader.state() is not None)
        with kazoo(leader.address) as client:
            client.sync("/a")
            assert client.get("/a")[0] == b"2"


@deep
def test_a_server_that_dies_is_told_of(tmp_path: Path) -> None:
    with started("--folder", tmp_path) as (process, _):
        (pid,) = children(process.pid)
        os.kill(pid, signal.SIGKILL)
        errors = process.communicate(timeout=SECONDS)[1]
        assert process.returncode == Status.FAILED
        assert "ended with status -9" in errors
        assert "server.log" in errors


def children(pid: int) -> list[int]:
    return [int(number) for number in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_what_it_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = invoke("zookeeper", "--folder", tmp_path, "--class-path", tmp_path / "none")
    assert wrong.exit_code == Status.FAILED
    assert "does not serve" in wrong.stderr
    assert "ClassNotFoundException" in wrong.stderr
    monkeypatch.setenv("PATH", str(tmp_path))
    without = invoke("zookeeper")
    assert without.exit_code == Status.FAILED
    assert "there is no java in PATH" in without.stderr
