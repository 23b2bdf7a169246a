"""`logd --processes 2`: two brokers that are ready, stop and end as one."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from millstream.terminal.status import Status
from tests.faults.cluster.cluster import SESSION_MS, metadata_of
from tests.millstream.invoking import On
from tests.support import depth
from tests.support.logd_process import LogdProcess
from tests.support.ports import free_port
from tests.support.waiting import wait_for

READY = "(nodes 4, 5, cluster "


class Processes(LogdProcess):
    """Brokers 4 and 5, at two ports in a row."""

    def __init__(self, folder: Path, zookeeper: str) -> None:
        super().__init__(
            folder,
            {
                "node.id": 4,
                "broker.rack": "here",
                "zookeeper.connect": zookeeper,
                "zookeeper.session.timeout.ms": SESSION_MS,
                "default.replication.factor": 2,
                "controlled.shutdown.retry.backoff.ms": 300,  # all stop at once in some tests
                "millstream.remote.shutdown.enable": "true",
            },
        )
        self._command += ["--processes", "2"]
        self.port = two_ports()

    @property
    def children(self) -> list[int]:
        """Process ids of the present process's children."""
        return [int(pid) for pid in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()]


def two_ports() -> int:
    """Return the first of two consecutive free ports."""
    while True:
        port = free_port()
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            return port


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


@contextmanager
def ready(tmp_path: Path, zookeeper: str) -> Iterator[Processes]:
    processes = Processes(tmp_path, zookeeper)
    children: list[int] = []
    processes.spawn()
    try:
        wait_for(lambda: READY in processes.log or not processes.is_running)
        assert processes.is_running, processes.log
        children = processes.children
        assert len(children) == 2
        yield processes
        wait_for(lambda: not any(map(is_alive, children)))
    finally:
        if processes.is_running:
            processes.kill()
        wait_for(lambda: not any(map(is_alive, children)))


@depth.deep
def test_they_are_ready_and_stop_one_after_the_other(tmp_path: Path, zookeeper: str) -> None:
    with ready(tmp_path, zookeeper) as processes:
        (line,) = [line for line in processes.log.splitlines() if line.startswith("logd ready at ")]
        addresses = f"127.0.0.1:{processes.port},127.0.0.1:{processes.port + 1}"
        assert line.startswith(f"logd ready at {addresses} {READY}")
        brokers = metadata_of(processes).brokers
        assert sorted((each.node_id, each.port, each.rack) for each in brokers) == [
            (4, processes.port, "here"),
            (5, processes.port + 1, "here"),
        ]
        On(addresses).done("topic", "create", "t", "--partitions", "2", "--replication-factor", "2")
        folders = [tmp_path / "data" / name / "t-0" for name in ("4", "5")]
        wait_for(lambda: all(folder.is_dir() for folder in folders))
        refused = On(addresses)("broker", "shutdown", 5, "--force", "--yes")
        assert refused.exit_code == Status.FAILED
        assert "broker 5 is run by a process that runs more than this broker" in refused.stderr
        assert processes.stop() == 0
    log = processes.log
    assert log.index("[4] logd: stopped") < log.index("[5] logd: stopped")
    assert "is gone" not in log


@depth.deep
def test_one_that_dies_ends_them_all(tmp_path: Path, zookeeper: str) -> None:
    with ready(tmp_path, zookeeper) as processes:
        os.kill(processes.children[1], signal.SIGKILL)
        assert processes.wait() == 1
        assert "logd: broker 5 was ended by SIGKILL: stopping the others" in processes.log
        assert "[4] logd: stopped" in processes.log


@depth.deep
def test_none_outlives_the_process_that_runs_them(tmp_path: Path, zookeeper: str) -> None:
    with ready(tmp_path, zookeeper) as processes:
        processes.kill()
    log = processes.log
    assert "[4] logd: stopped" in log and "[5] logd: stopped" in log
    for name in ("4", "5"):
        assert (tmp_path / "data" / name / ".kafka_cleanshutdown").exists()


@pytest.mark.parametrize("more", [{}, {"zookeeper.connect": ""}])
def test_by_themselves_they_are_refused(tmp_path: Path, more: dict[str, str]) -> None:
    processes = Processes(tmp_path, "")
    for key in ("zookeeper.connect", "default.replication.factor"):
        del processes.overrides[key]
    processes.overrides |= more
    processes.spawn()
    assert processes.wait() == 2
    assert "logd: --processes=2 is not allowed: several brokers are a cluster" in processes.log
