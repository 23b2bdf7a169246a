"""Three servers of ZooKeeper under a cluster: its leader, a follower, or all of them are lost for a while."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from millstream.zookeeper.ensemble import Ensemble
from millstream.zookeeper.server import Server
from tests.faults.cluster.written import go_on, in_sync, written
from tests.support import depth
from tests.support.waiting import wait_for

pytest.importorskip("confluent_kafka")
pytestmark = depth.deep

AWAY_S = 60.0
"""Many sessions, and less than producers wait for."""


def of_mode(three: Ensemble, mode: str) -> Server:
    return next(each for each in three.servers if (state := each.state()) and state.mode == mode)


def started(*servers: Server) -> None:
    for server in servers:
        server.start()
    wait_for(lambda: all(server.state() is not None for server in servers))


@pytest.mark.parametrize("mode", ["leader", "follower"])
def test_a_server_is_lost(tmp_path: Path, three: Ensemble, mode: str) -> None:
    """And comes back, each time another one."""
    with written(tmp_path, f"{three.connect_string}/{mode}") as (cluster, writers):
        for _ in range(3):
            server = of_mode(three, mode)
            server.kill()
            go_on(writers)
            started(server)
            go_on(writers)
        in_sync(cluster, writers)


def test_the_ensemble_is_away_for_long(tmp_path: Path, three: Ensemble) -> None:
    """Nothing is acknowledged, nobody is elected, no session ends before the ensemble is back."""
    with written(tmp_path, f"{three.connect_string}/away") as (cluster, writers):
        for server in three.servers:
            server.kill()
        for writer in writers:
            writer.stands_still()
        acknowledged = [len(writer.acknowledged) for writer in writers]
        time.sleep(AWAY_S)
        assert [len(writer.acknowledged) for writer in writers] == acknowledged
        started(*three.servers)
        go_on(writers)
        in_sync(cluster, writers)


def test_a_majority_is_lost(tmp_path: Path, three: Ensemble) -> None:
    """Leases do not live by the server that is left, which answers reads for a while."""
    with written(tmp_path, f"{three.connect_string}/majority") as (cluster, writers):
        leader = of_mode(three, "leader")
        follower = of_mode(three, "follower")
        for server in (leader, follower):
            server.kill()
        for writer in writers:
            writer.stands_still()
        started(leader, follower)
        go_on(writers)
        in_sync(cluster, writers)
