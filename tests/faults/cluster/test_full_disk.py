"""A broker whose disk takes no more: others lead, and it catches up when there is room again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.cluster.chaos import ROOM
from tests.faults.cluster.cluster import Cluster
from tests.faults.cluster.written import go_on, in_sync, written
from tests.support import depth
from tests.support.full_disk import filled, largest_file, limit_files, mounted
from tests.support.waiting import wait_for

pytest.importorskip("confluent_kafka")
pytestmark = depth.deep


def is_offline(cluster: Cluster, victim: int, folder: Path) -> bool:
    return f"log directory {folder} is offline" in cluster.brokers[victim].log


@pytest.mark.parametrize("who", ["controller", "another"])
def test_the_only_folder(tmp_path: Path, zookeeper: str, who: str) -> None:
    """Brokers end if their only log directory is full."""
    with written(tmp_path, zookeeper) as (cluster, writers):
        controller = cluster.controller
        victim = controller if who == "controller" else controller % 3 + 1
        broker = cluster.brokers[victim]
        limit_files(broker.pid, largest_file(broker.folder) + ROOM)
        wait_for(lambda: not broker.is_running)
        assert broker.returncode == 1
        assert is_offline(cluster, victim, broker.folder / "data")
        go_on(writers)
        cluster.start(victim)
        in_sync(cluster, writers)


def test_one_of_two_folders(tmp_path: Path, zookeeper: str) -> None:
    """Partitions of the other log directory are served on."""
    well, small = tmp_path / "well", tmp_path / "small"
    small.mkdir()
    with (
        mounted(small, "-t", "tmpfs", "-o", "size=32m", "tmpfs"),
        written(tmp_path, zookeeper, of_one={2: {"log.dirs": f"{well},{small}"}}) as (cluster, writers),
    ):
        victim = cluster.brokers[2]
        with filled(small):
            wait_for(lambda: is_offline(cluster, 2, small))
            go_on(writers)
            assert victim.is_running and not is_offline(cluster, 2, well)
        victim.stop()
        cluster.start(2)
        in_sync(cluster, writers)
