"""Brokers that do not reach each other, or ZooKeeper: a broker alone acknowledges nothing, others go on.

Between hosts packets are lost. Through a proxy, where hosts cannot be had and at more than depth 1,
connections stay, and what is sent waits; or they break.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from kafka_client.errors import ErrorCode
from kafka_client.wire.messages.find_coordinator import FindCoordinatorRequest
from kafka_client.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafka_client.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from tests.faults.cluster.cluster import ZOOKEEPER, Cluster, metadata_of
from tests.faults.cluster.conftest import path_in
from tests.faults.cluster.written import go_on, in_sync, written
from tests.support import depth
from tests.support.hosts import Hosts, why_no_hosts
from tests.support.network import Direction, Network, both_ways
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

pytest.importorskip("confluent_kafka")

LAG_MS = 3000
OFFSETS = "__consumer_offsets"
PROBE = "probe"
"""A topic to which only tests write."""


@pytest.fixture(params=["hosts", "proxy"][: depth.times(1)])
def network(request: pytest.FixtureRequest) -> Iterator[Network | Hosts]:
    """Well again behind the test."""
    if request.param == "hosts" and why_no_hosts() is None:
        hosts: Hosts = request.getfixturevalue("hosts")
        yield hosts
        hosts.heal()
    else:
        with Network() as proxy:
            yield proxy


@pytest.fixture
def zookeeper(request: pytest.FixtureRequest, network: Network | Hosts) -> str:
    """For `zookeeper.connect`, in that network."""
    return path_in(request.getfixturevalue("hosted" if isinstance(network, Hosts) else "ensemble"))


def others_of(cluster: Cluster, victim: int) -> list[int]:
    return [id_ for id_ in cluster.brokers if id_ != victim]


def led_by(cluster: Cluster, victim: int, topic: str) -> list[int]:
    return [index for index, state in cluster.states(topic).items() if state.leader_id == victim]


def assert_refuses(cluster: Cluster, victim: int, partitions: Iterable[int]) -> None:
    """Check that a broker that was the leader, and believes that it is, acknowledges nothing."""
    broker = cluster.brokers[victim]
    with RawClient(broker.port, broker.host) as client:
        for partition in partitions:
            answer = client.produce(PROBE, [(1, None, b"", ())], partition=partition, acks=1)
            assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@depth.deep
def test_one_is_away_from_zookeeper(tmp_path: Path, zookeeper: str, network: Network | Hosts) -> None:
    with written(tmp_path, zookeeper, network=network, replica_lag_time_max_ms=LAG_MS) as (cluster, writers):
        cluster.create_topic(PROBE)

        def away(victim: int, disturb: Callable[..., None], *directions: Direction) -> None:
            led = led_by(cluster, victim, PROBE)
            before = cluster.brokers[victim].log.count("is registered")
            disturb(*directions)
            others = others_of(cluster, victim)
            wait_for(lambda: all(cluster.sees(cluster.brokers[id_], dead=victim) for id_ in others))
            assert_refuses(cluster, victim, led)
            go_on(writers)
            assert_refuses(cluster, victim, led)
            network.heal()
            wait_for(lambda: cluster.brokers[victim].log.count("is registered") > before)
            wait_for(lambda: not any(cluster.sees(cluster.brokers[id_], dead=victim) for id_ in others))
            in_sync(cluster, writers)
            wait_for(lambda: cluster.is_in_sync(PROBE))

        away(victim := cluster.controller, network.silence, *both_ways(victim, [ZOOKEEPER]))
        away(victim := cluster.controller % 3 + 1, network.silence, *both_ways(victim, [ZOOKEEPER]))
        away(victim := cluster.controller % 3 + 1, network.silence, (victim, ZOOKEEPER))
        away(victim := cluster.controller, network.silence, (ZOOKEEPER, victim))
        away(victim := cluster.controller, network.cut, *both_ways(victim, [ZOOKEEPER]))
        everybody = [ZOOKEEPER, *others_of(cluster, victim := cluster.controller)]
        away(victim, network.silence, *both_ways(victim, everybody))


def isrs(cluster: Cluster, told_by: int, topic: str) -> dict[int, tuple[int, set[int]]]:
    """Leader and in-sync replicas of each partition, as one broker says."""
    (topic_metadata,) = metadata_of(cluster.brokers[told_by], topic).topics
    return {each.partition_index: (each.leader_id, set(each.isr_nodes)) for each in topic_metadata.partitions}


@depth.deep
def test_two_do_not_reach_each_other(tmp_path: Path, zookeeper: str, network: Network | Hosts) -> None:
    """Parted brokers go on with the third, which is the controller."""
    with written(tmp_path, zookeeper, network=network, replica_lag_time_max_ms=LAG_MS) as (cluster, writers):

        def apart(disturb: Callable[..., None], *, one_way: bool = False) -> None:
            third = cluster.controller
            one, two = others_of(cluster, third)
            disturb(*both_ways(one, [two])[: 1 if one_way else 2])

            def left() -> bool:
                views = isrs(cluster, third, writers[0].topic).values()
                return all(leader == third or isr == {leader, third} for leader, isr in views)

            wait_for(left)
            go_on(writers)
            network.heal()
            in_sync(cluster, writers)

        apart(network.silence)
        apart(network.cut)
        apart(network.silence, one_way=True)


@depth.deep
@pytest.mark.parametrize("who", ["controller", "another"])
def test_one_is_away_from_the_others(
    tmp_path: Path, zookeeper: str, network: Network | Hosts, who: str
) -> None:
    """Nobody is elected in place of a broker that keeps its session, and it acknowledges nothing that it has
    alone. A leader without a controller keeps its ISR and waits.
    """
    with written(tmp_path, zookeeper, network=network, replica_lag_time_max_ms=LAG_MS) as (cluster, writers):
        for disturb in (network.silence, network.cut):
            controller = cluster.controller
            victim = controller if who == "controller" else controller % 3 + 1
            disturb(*both_ways(victim, others_of(cluster, victim)))

            def alone(victim: int = victim, controller: int = controller) -> bool:
                """By the controller's word: the victim's partitions if it is, else those of the others."""
                views = isrs(cluster, controller, writers[0].topic).values()
                return all(
                    isr == {victim} if leader == victim else victim not in isr
                    for leader, isr in views
                    if (leader == victim) is (victim == controller)
                )

            wait_for(alone)
            network.heal()
            go_on(writers)
            in_sync(cluster, writers)


def commit(cluster: Cluster, coordinator: int, offset: int) -> None:
    """Commit an offset of the group g; repeated while its coordinator loads, or waits for replicas."""
    broker = cluster.brokers[coordinator]
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topic = OffsetCommitRequestTopic(name=PROBE, partitions=[partition])
    with RawClient(broker.port, broker.host) as client:

        def is_committed() -> bool:
            answer = client.request(OffsetCommitRequest(group_id="g", topics=[topic]), 9)
            return bool(answer.topics[0].partitions[0].error_code == 0)

        wait_for(is_committed)


def fetched(client: RawClient) -> tuple[int, int]:
    """Return the error code of an OffsetFetch of the group g, and the offset."""
    groups = [OffsetFetchRequestGroup(group_id="g", topics=None)]
    (group,) = client.request(OffsetFetchRequest(groups=groups), 9).groups
    return group.error_code, group.topics[0].partitions[0].committed_offset if group.topics else -1


@depth.deep
def test_a_coordinator_that_is_cut_off_tells_no_old_offsets(
    tmp_path: Path, zookeeper: str, network: Network | Hosts
) -> None:
    """Clients reach it, and nobody else does: it does not know of what its successor has acknowledged."""
    with Cluster(tmp_path, zookeeper, network=network, offsets_topic_num_partitions=1) as cluster:
        cluster.create_topic(PROBE)
        victim = cluster.coordinator("g")
        commit(cluster, victim, 1)
        broker = cluster.brokers[victim]
        with RawClient(broker.port, broker.host) as client:
            assert fetched(client) == (ErrorCode.NONE, 1)
            others = others_of(cluster, victim)
            network.silence(*both_ways(victim, [ZOOKEEPER, *others]))
            wait_for(lambda: all(cluster.sees(cluster.brokers[id_], dead=victim) for id_ in others))
            wait_for(lambda: isrs(cluster, others[0], OFFSETS)[0][0] in others)
            commit(cluster, isrs(cluster, others[0], OFFSETS)[0][0], 2)
            assert fetched(client) == (ErrorCode.NOT_COORDINATOR, -1)
            response = client.request(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
            assert response.coordinators[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
            network.heal()
            wait_for(lambda: cluster.is_in_sync(OFFSETS))
