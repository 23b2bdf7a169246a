"""Each broker on a host of its own: packets are lost, and nobody is told.

Otherwise than with `test_partitions`'s proxy there are connections one end of which is gone, or that nobody
accepts, and what was sent comes when TCP tries again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from millstream.zookeeper.ensemble import Ensemble
from tests.faults.cluster.cluster import ZOOKEEPER, Cluster
from tests.faults.cluster.conftest import TICK_MS, need_zookeeper
from tests.faults.cluster.hosted_ensemble import HostedEnsemble
from tests.faults.cluster.written import CLIENTS, go_on, in_sync, written
from tests.support import depth
from tests.support.hosts import Hosts
from tests.support.network import both_ways
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

pytest.importorskip("confluent_kafka")

LAG_MS = 3000


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    with Hosts([1, 2, 3, ZOOKEEPER, CLIENTS]) as hosts:
        yield hosts


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory, hosts: Hosts) -> Iterator[Ensemble]:
    need_zookeeper()
    with HostedEnsemble(tmp_path_factory.mktemp("zookeeper"), hosts, [ZOOKEEPER], tick_ms=TICK_MS) as running:
        yield running


def test_a_leader_is_cut_off(tmp_path: Path, hosts: Hosts, hosted: Ensemble) -> None:
    """From everybody, with a client beside it."""
    path = f"{hosted.connect_string}/cut-off"
    import time; t=time.time()
    with written(tmp_path, path, hosts=hosts, replica_lag_time_max_ms=LAG_MS) as (cluster, writers):
        print("up", time.time()-t)
        victim = cluster.leader("own")
        hosts.unplug(victim)
        go_on(writers)
        print("gone on", time.time()-t)
        hosts.heal()
        in_sync(cluster, writers)
        print("in sync", time.time()-t)
    print("end", time.time()-t)
