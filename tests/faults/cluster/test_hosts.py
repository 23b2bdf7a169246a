"""Each broker on a host of its own: packets are lost without an error.

No proxy can do this: one end of a connection disappears, connections are not accepted, and data arrives when
TCP retries. `test_partitions` parts brokers in both ways, with a proxy and between hosts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafka_client.errors import ErrorCode
from millstream.zookeeper.ensemble import Ensemble
from millstream.zookeeper.server import Server
from tests.faults.cluster.chaos import Chaos
from tests.faults.cluster.cluster import ZOOKEEPER, Cluster
from tests.faults.cluster.conftest import TICK_MS, ZOOKEEPERS, need_zookeeper, path_in
from tests.faults.cluster.hosted_ensemble import HostedEnsemble
from tests.faults.cluster.written import CLIENTS, go_on, in_sync, written
from tests.support import depth
from tests.support.hosts import Hosts
from tests.support.network import End, both_ways
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

pytest.importorskip("confluent_kafka")
pytestmark = depth.deep

LAG_MS = 3000
LOSS_PERCENT = 10
FAULTS = 8
PROBE = "probe"
"""A topic to which only tests write."""


def others_see(cluster: Cluster, victim: int, *, dead: bool) -> bool:
    others = [broker for id_, broker in cluster.brokers.items() if id_ != victim]
    return all(cluster.sees(broker, dead=victim) == dead for broker in others)


def everybody_but(victim: int) -> list[End]:
    return [ZOOKEEPER, CLIENTS, *({1, 2, 3} - {victim})]


WAYS: dict[str, Callable[[Hosts, int], None]] = {
    "unplugged": lambda hosts, victim: hosts.unplug(victim),
    "down": lambda hosts, victim: hosts.take_down(victim),
    "silent": lambda hosts, victim: hosts.silence(*both_ways(victim, everybody_but(victim))),
    "mute": lambda hosts, victim: hosts.silence(*both_ways(victim, everybody_but(victim))[::2]),
    "deaf": lambda hosts, victim: hosts.silence(*both_ways(victim, everybody_but(victim))[1::2]),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_leader_is_alone(tmp_path: Path, hosts: Hosts, hosted_zookeeper: str, way: str) -> None:
    """Leaders that are alone acknowledge nothing, not even to clients on their host; others are elected."""
    with written(tmp_path, hosted_zookeeper, network=hosts, replica_lag_time_max_ms=LAG_MS) as (
        cluster,
        writers,
    ):
        cluster.create_topic(PROBE)
        for victim in (cluster.controller, cluster.controller % 3 + 1):
            broker = cluster.brokers[victim]
            led = [index for index, state in cluster.states(PROBE).items() if state.leader_id == victim]
            client = hosts.within(victim, lambda broker=broker: RawClient(broker.port, broker.host))  # type: ignore[misc]
            with client:
                WAYS[way](hosts, victim)
                wait_for(lambda victim=victim: others_see(cluster, victim, dead=True))  # type: ignore[misc]
                for partition in led:
                    answer = client.produce(PROBE, [(1, None, b"", ())], partition=partition, acks=1)
                    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
                go_on(writers)
            hosts.heal()
            wait_for(lambda victim=victim: others_see(cluster, victim, dead=False))  # type: ignore[misc]
            in_sync(cluster, writers)
            wait_for(lambda: cluster.is_in_sync(PROBE))


def test_the_power_is_cut(tmp_path: Path, hosts: Hosts, hosted_zookeeper: str) -> None:
    """Connections to a broker without power stay half open, even when it is back.

    A client with a request gets neither a response nor an end.
    """
    with written(tmp_path, hosted_zookeeper, network=hosts, replica_lag_time_max_ms=LAG_MS) as (
        cluster,
        writers,
    ):
        for back_at_once in (True, False):
            for victim in (cluster.controller, cluster.controller % 3 + 1):
                hosts.unplug(victim)
                cluster.kill(victim)
                if not back_at_once:
                    wait_for(lambda victim=victim: others_see(cluster, victim, dead=True))  # type: ignore[misc]
                    go_on(writers)
                hosts.heal()
                cluster.start(victim)
                go_on(writers)
                in_sync(cluster, writers)


def test_packets_are_lost(tmp_path: Path, hosts: Hosts, hosted_zookeeper: str) -> None:
    """Lost packets, everywhere and all the time, do no harm while a leader is killed and comes back."""
    with written(tmp_path, hosted_zookeeper, network=hosts, replica_lag_time_max_ms=LAG_MS) as (
        cluster,
        writers,
    ):
        how = hosts.worsen(LOSS_PERCENT)
        go_on(writers)
        cluster.kill(victim := cluster.leader("own"))
        go_on(writers)
        cluster.start(victim)
        go_on(writers)
        print(f"{how}: {hosts.lost()} packets lost by rules")
        hosts.heal()
        in_sync(cluster, writers)


@pytest.fixture(scope="module")
def ensemble_of_hosts(tmp_path_factory: pytest.TempPathFactory, hosts: Hosts) -> Iterator[Ensemble]:
    """Three servers, each on a host of its own."""
    need_zookeeper()
    with HostedEnsemble(tmp_path_factory.mktemp("three"), hosts, ZOOKEEPERS, tick_ms=TICK_MS) as running:
        yield running


@pytest.fixture
def three_hosts(ensemble_of_hosts: Ensemble, hosts: Hosts) -> Iterator[Ensemble]:
    """The same; the network is well again behind the test."""
    yield ensemble_of_hosts
    hosts.heal()


def leading(ensemble: Ensemble) -> Server | None:
    """Return the server that leads the ensemble by its own word."""
    leaders = (each for each in ensemble.servers if (state := each.state()) and state.mode == "leader")
    return next(leaders, None)


def test_zookeepers_leader_is_alone(tmp_path: Path, hosts: Hosts, three_hosts: Ensemble) -> None:
    """From its followers and everybody; then from its followers only, so that it goes on to take requests."""
    path = path_in(three_hosts)
    with written(tmp_path, path, network=hosts, replica_lag_time_max_ms=LAG_MS) as (cluster, writers):
        for from_brokers in (True, False):
            server = leading(three_hosts)
            assert server is not None
            end = ZOOKEEPERS[three_hosts.servers.index(server)]
            others = [each for each in ZOOKEEPERS if each != end]
            hosts.cut(*both_ways(end, [*others, *([1, 2, 3] if from_brokers else [])]))
            wait_for(lambda old=server: leading(three_hosts) not in (None, old))  # type: ignore[misc]
            go_on(writers)
            hosts.heal()
            wait_for(lambda: all(each.state() is not None for each in three_hosts.servers))
            in_sync(cluster, writers)


@pytest.mark.parametrize("seed", range(depth.times(1)), ids=lambda seed: f"seed-{seed}")
def test_many_faults(
    tmp_path: Path, hosts: Hosts, hosted: Ensemble, hosted_zookeeper: str, seed: int
) -> None:
    with written(tmp_path, hosted_zookeeper, network=hosts, replica_lag_time_max_ms=LAG_MS) as (
        cluster,
        writers,
    ):
        chaos = Chaos(cluster, hosted, writers, seed, hosts)
        chaos.run(FAULTS)
        print(dict(chaos.done))
