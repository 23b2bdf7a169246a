"""Where state is: what instances tell each other of it, and what is made of that."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_client import TopicPartition
from kafka_client.errors import ConfigError
from kafka_client.wire import encode_versioned
from kafka_client.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from streams import StreamsBuilder, StreamsConfig, Topology
from streams.errors import InvalidStateStore, UnknownStateStore
from streams.queries import HostInfo, KeyQueryMetadata
from streams.runtime.assignment.assignment import Rules, Share
from streams.runtime.assignment.hosts import Hosts
from streams.runtime.assignment.protocol import HostTasks, MemberState, StreamsProtocol, hosts_of
from streams.runtime.task_id import TaskId
from streams.runtime.topics import TopicNames

FIRST, SECOND = TaskId(0, 0), TaskId(0, 1)
HERE, THERE = HostInfo("h", 1), HostInfo("i", 2)


def counting() -> Topology:
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    builder.stream("in").group_by_key().count(store="counts")
    return builder.build()


def protocol(host: HostInfo | None = None) -> StreamsProtocol:
    topology, unused = counting(), None
    client: Any = unused
    return StreamsProtocol(
        client,
        topology,
        TopicNames("app", topology),
        replication_factor=1,
        rules=Rules(),
        probing_interval_ms=1000,
        state=lambda: MemberState(frozenset({FIRST})),
        host=lambda: host,
    )


def test_a_member_says_where_it_answers() -> None:
    ours = protocol(HostInfo("::1", 7070))
    assert ours._read_state("m", ours.metadata()) == MemberState(
        frozenset({FIRST}), host=HostInfo("::1", 7070)
    )


@pytest.mark.parametrize("more", [b"", b',"host":""', b',"host":"nonsense"', b',"host":"","news":[1]'])
def test_one_that_does_not_is_understood(more: bytes) -> None:
    """Instances of the same version without this field, and with later ones, share tasks with ours."""
    note = b'{"v":2,"active":["0_0"]%s}' % more
    subscription = encode_versioned(ConsumerProtocolSubscription(topics=["in"], user_data=note), 1)
    assert protocol()._read_state("m", subscription) == MemberState(frozenset({FIRST}))


def test_every_member_is_told_what_others_have() -> None:
    ours, counts = protocol(), {"in": 2}
    members = {"a": MemberState(host=HERE), "b": MemberState(), "c": MemberState()}
    shares = {"a": Share([FIRST], [SECOND]), "b": Share([SECOND]), "c": Share()}
    assignment = ours.read_assignment(ours._assignment(shares["b"], counts, None, hosts_of(members, shares)))
    assert assignment.hosts == {HERE: HostTasks(frozenset({FIRST}), frozenset({SECOND}))}
    assert assignment.partitions == {0: 2}
    silent = ours.read_assignment(ours._assignment(shares["b"], counts, None, {}))
    assert (silent.hosts, silent.partitions) == ({}, {}), "as of a leader that does not tell"
    assert silent.active == assignment.active == {SECOND}


def all_hosts() -> Hosts:
    topology = counting()
    hosts = Hosts(topology, TopicNames("app", topology), str(HERE))
    hosts.assign(
        {HERE: HostTasks(frozenset({FIRST}), frozenset({SECOND})), THERE: HostTasks(frozenset({SECOND}))},
        {0: 2},
    )
    return hosts


def test_a_key_is_where_its_partition_is() -> None:
    hosts = all_hosts()
    second = KeyQueryMetadata(partition=1, active_host=THERE, standby_hosts=(HERE,))
    assert hosts.of_key("counts", "a") == KeyQueryMetadata(partition=0, active_host=HERE)
    assert hosts.of_key("counts", KEY_OF_SECOND) == second
    assert hosts.of_key("counts", "a", lambda key, count: count - 1) == second
    hosts.assign({HERE: HostTasks(frozenset({FIRST}))}, {0: 2})
    assert hosts.of_key("counts", KEY_OF_SECOND).active_host is None, "nobody runs it at present"


def test_instances_are_told_by_what_they_have() -> None:
    hosts = all_hosts()
    assert [(str(each.host), each.tasks, each.standby_tasks) for each in hosts.of_store("counts")] == [
        ("h:1", {"0_0"}, {"0_1"}),
        ("i:2", {"0_1"}, set()),
    ]
    assert hosts.all()[0].state_store_names == {"counts"}
    assert hosts.all()[0].standby_topic_partitions == {TopicPartition("in", 1)}


def test_what_is_not_known_says_so() -> None:
    topology = counting()
    hosts = Hosts(topology, TopicNames("app", topology), "")
    with pytest.raises(InvalidStateStore, match=r"not known yet where store counts is"):
        hosts.of_key("counts", "a")
    with pytest.raises(UnknownStateStore, match="'nothing'; the topology has counts"):
        hosts.of_store("nothing")
    with pytest.raises(InvalidStateStore, match="7 is no key of store counts"):
        all_hosts().of_key("counts", 7)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("application_server", "7070"),
        ("application_server", "host:"),
        ("http_listener", "localhost:70700"),
        ("http_listener", "0.0.0.0:7070"),
    ],
)
def test_an_address_that_nobody_reaches_is_refused(key: str, value: str) -> None:
    with pytest.raises(ConfigError, match=value):
        StreamsConfig(application_id="app", bootstrap_servers="h:9092", **{key: value})


KEY_OF_SECOND = "d"
"""Kafka's producers put it into partition 1 of 2."""
