"""Paths and payloads against those of Kafka 3's brokers (tests/java/Znodes.java); older and wrong ones."""

from __future__ import annotations

import base64
import dataclasses
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_client.acl import AclEntry, Operation, PatternType, Permission, ResourcePattern, ResourceType
from kafka_client.topic_partition import TopicPartition
from logd.metadata.zookeeper.errors import BadZnode
from logd.metadata.zookeeper.znodes import acl_znodes, paths, topic_znodes, znodes
from logd.metadata.zookeeper.znodes.topic_znodes import Assignment, PartitionState, TopicZnode
from logd.metadata.zookeeper.znodes.znodes import ControllerZnode, Endpoint, ProducerIdBlock, Registration
from tests.support import java

GOLDEN = Path(__file__).parent / "golden" / "znodes.txt"
needs_program = pytest.mark.skipif(
    not (java.LIBS_3 and shutil.which("javac")),
    reason=f"{java.NEEDS}: KAFKA_3_LIBS of Kafka 3's jars, or no javac",
)
T1 = TopicPartition("t", 1)
NOW_MS = 1_700_000_000_000
PLAIN = Endpoint("PLAINTEXT", "broker-5", 9092, "PLAINTEXT")
OUTSIDE = Endpoint("EXTERNAL", "2001:db8::1", 9093, "SASL_SSL")
BROKER = Registration(endpoints=(OUTSIDE, PLAIN), rack="r1")
ASSIGNMENTS = {0: Assignment((1, 2)), 1: Assignment((2, 3, 1), (3,), (1,))}
TOPIC = TopicZnode(topic_id=bytes(range(1, 17)), assignments=ASSIGNMENTS)
LITERAL = ResourcePattern(ResourceType.TRANSACTIONAL_ID, PatternType.LITERAL, "name:1")
PREFIXED = ResourcePattern(ResourceType.TOPIC, PatternType.PREFIXED, "name:1")
ALICE = AclEntry("User:alice", "10.0.0.7", Operation.READ, Permission.DENY)
GROUP = AclEntry("Group:ä", "10.0.0.7", Operation.DESCRIBE_CONFIGS, Permission.DENY)
STATE = PartitionState(1, 3, (2, 1), 4)
LEADERLESS = PartitionState(-1, 4, (2,), 4)
RECOVERING = PartitionState(2, 5, (2,), 4, True)

OURS: dict[str, tuple[str, bytes]] = {
    "controller": (paths.CONTROLLER, znodes.encode_controller(1, NOW_MS)),
    "controller-epoch": (paths.CONTROLLER_EPOCH, znodes.encode_number(7)),
    "cluster-id": (paths.CLUSTER_ID, znodes.encode_cluster_id("abcdefghijklmnop-_0123")),
    "broker": (paths.broker(5), znodes.encode_registration(BROKER, 0)),
    "broker-without-plaintext": (
        paths.broker(6),
        znodes.encode_registration(Registration(endpoints=(OUTSIDE,)), 0),
    ),
    "topic": (paths.topic("t"), topic_znodes.encode_topic(TOPIC)),
    "topic-without-id": (
        paths.topic("t"),
        topic_znodes.encode_topic(TopicZnode(topic_id=None, assignments=ASSIGNMENTS)),
    ),
    "partition": (paths.partition("t", 1), b""),
    "state": (paths.state("t", 1), topic_znodes.encode_state(STATE)),
    "state-without-leader": (paths.state("t", 0), topic_znodes.encode_state(LEADERLESS)),
    "state-recovering": (paths.state("t", 0), topic_znodes.encode_state(RECOVERING)),
    "config": (
        paths.config("topics", "t"),
        znodes.encode_config({"retention.ms": "1000", "cleanup.policy": "compact,delete"}),
    ),
    "config-default": (paths.config("brokers", paths.DEFAULT_ENTITY), znodes.encode_config({})),
    "config-change": (paths.CONFIG_CHANGE_PREFIX, znodes.encode_config_change("topics/t")),
    "producer-ids": (
        paths.PRODUCER_ID_BLOCK,
        znodes.encode_producer_ids(ProducerIdBlock(3, 5000, 5999)),
    ),
    "reassign": (paths.REASSIGN_PARTITIONS, znodes.encode_reassignments({T1: (2, 3)})),
    "preferred": (paths.PREFERRED_REPLICA_ELECTION, znodes.encode_partitions([T1])),
    "isr-change": (paths.ISR_CHANGES + "/isr_change_", znodes.encode_partitions([T1])),
    "delete-topic": (paths.deletion("t"), b""),
    "consumer-offset": (paths.CONSUMERS + "/g/offsets/t/1", znodes.encode_number(42)),
    "broker-sequence": (paths.BROKER_SEQUENCE, b""),
    "acls": (acl_znodes.path_of(LITERAL), acl_znodes.encode_entries([ALICE])),
    "acls-change": (acl_znodes.change_path_of(LITERAL), acl_znodes.encode_change(LITERAL)),
    "prefixed-acls": (acl_znodes.path_of(PREFIXED), acl_znodes.encode_entries([GROUP])),
    "prefixed-acls-change": (acl_znodes.change_path_of(PREFIXED), acl_znodes.encode_change(PREFIXED)),
}
NO_JSON = {"acls-change"}
"""Payloads that are plain text."""
WITHOUT_READER = {"acls-change", "prefixed-acls-change"}
"""Payloads for Kafka's brokers only."""
LISTS = {"persistent": paths.PERSISTENT, "for-acls": acl_znodes.PERSISTENT}

DECODED: dict[str, tuple[Callable[[bytes], Any], Any]] = {
    "controller": (znodes.decode_controller, ControllerZnode(1)),
    "controller-epoch": (lambda data: znodes.decode_number("/", data), 7),
    "cluster-id": (znodes.decode_cluster_id, "abcdefghijklmnop-_0123"),
    "broker": (lambda data: znodes.decode_registration(5, data), BROKER),
    "broker-without-plaintext": (
        lambda data: znodes.decode_registration(6, data),
        Registration(endpoints=(OUTSIDE,)),
    ),
    "topic": (lambda data: topic_znodes.decode_topic("t", data), TOPIC),
    "topic-without-id": (
        lambda data: topic_znodes.decode_topic("t", data),
        TopicZnode(topic_id=None, assignments=ASSIGNMENTS),
    ),
    "state": (lambda data: topic_znodes.decode_state("/", data), STATE),
    "state-without-leader": (
        lambda data: topic_znodes.decode_state("/", data),
        PartitionState(-1, 4, (2,), 4),
    ),
    "state-recovering": (
        lambda data: topic_znodes.decode_state("/", data),
        PartitionState(2, 5, (2,), 4, True),
    ),
    "config": (
        lambda data: znodes.decode_config("/", data),
        {"retention.ms": "1000", "cleanup.policy": "compact,delete"},
    ),
    "config-default": (lambda data: znodes.decode_config("/", data), {}),
    "config-change": (lambda data: znodes.decode_config_change("/", data), "topics/t"),
    "producer-ids": (znodes.decode_producer_ids, ProducerIdBlock(3, 5000, 5999)),
    "reassign": (znodes.decode_reassignments, {T1: (2, 3)}),
    "preferred": (lambda data: znodes.decode_partitions("/", data), {T1}),
    "isr-change": (lambda data: znodes.decode_partitions("/", data), {T1}),
    "consumer-offset": (lambda data: znodes.decode_number("/", data), 42),
    "acls": (lambda data: acl_znodes.decode_entries("/", data), (ALICE,)),
    "prefixed-acls": (lambda data: acl_znodes.decode_entries("/", data), (GROUP,)),
}

READ_BY_KAFKA = {
    "controller": "1 -1",
    "controller-epoch": "7",
    "cluster-id": "abcdefghijklmnop-_0123",
    "broker": "5 -1 Some(r1) [EndPoint(2001:db8::1,9093,ListenerName(EXTERNAL),SASL_SSL), "
    "EndPoint(broker-5,9092,ListenerName(PLAINTEXT),PLAINTEXT)]",
    "topic": "Some(AQIDBAUGBwgJCgsMDQ4PEA) t-0=ReplicaAssignment(replicas=1,2, addingReplicas=, "
    "removingReplicas=), t-1=ReplicaAssignment(replicas=2,3,1, addingReplicas=3, removingReplicas=1)",
    "state": "1 3 [2, 1] 4 RECOVERED 9",
    "config": "{cleanup.policy=compact,delete, retention.ms=1000}",
    "producer-ids": "3 5000 5999",
    "reassign": "{t-1=Buffer(2, 3)}",
    "preferred": "[t-1]",
    "isr-change": "[t-1]",
    "consumer-offset": "42",
    "acls": "[User:alice has DENY permission for operations: READ from hosts: 10.0.0.7]",
    "prefixed-acls": "[Group:ä has DENY permission for operations: DESCRIBE_CONFIGS from hosts: 10.0.0.7]",
    "acls-change": "ResourcePattern(resourceType=TRANSACTIONAL_ID, name=name:1, patternType=LITERAL)",
    "prefixed-acls-change": "ResourcePattern(resourceType=TOPIC, name=name:1, patternType=PREFIXED)",
}


def test_a_broker_that_shuts_down_says_so() -> None:
    leaving = dataclasses.replace(BROKER, is_shutting_down=True)
    data = znodes.encode_registration(leaving, 0)
    assert znodes.decode_registration(5, data) == leaving
    assert json.loads(data) == {
        **json.loads(znodes.encode_registration(BROKER, 0)),
        "millstream_is_shutting_down": True,
    }


def golden() -> list[tuple[str, str, str]]:
    lines = (line.split(" ", 2) for line in GOLDEN.read_text().splitlines())
    return [(name, path, payload) for name, path, payload in lines]


@needs_program
def test_the_golden_lines_are_kafkas() -> None:
    encoded = java.run_program("Znodes", "encode", libs=java.LIBS_3)
    # A registration's is the time at which it was encoded.
    golden = re.sub(r'(?m)^(broker.*"timestamp":)"\d+"', r'\1"0"', encoded)
    if os.environ.get("REWRITE"):
        GOLDEN.write_text(golden)
    assert golden == GOLDEN.read_text()


def test_paths_and_payloads_are_kafkas() -> None:
    theirs = {name: (path, payload) for name, path, payload in golden() if name not in LISTS}
    assert {name: path for name, (path, _) in OURS.items()} == {
        name: path for name, (path, _) in theirs.items()
    }
    for name, (_, payload) in theirs.items():
        ours = OURS[name][1].decode()
        if name in NO_JSON:
            assert ours == payload
        else:
            assert (ours and json.loads(ours)) == (payload and json.loads(payload)), name


@pytest.mark.parametrize("kind", LISTS)
def test_the_persistent_paths_are_kafkas(kind: str) -> None:
    assert sorted(LISTS[kind]) == sorted(path for name, path, _ in golden() if name == kind)


def test_what_kafka_writes_is_read() -> None:
    read = {name: payload for name, _, payload in golden() if payload and name not in WITHOUT_READER}
    assert set(read) == set(DECODED)
    for name, (decode, expected) in DECODED.items():
        assert decode(read[name].encode()) == expected, name
        assert decode(OURS[name][1]) == expected, name


@needs_program
def test_what_we_write_is_read_by_kafka() -> None:
    lines = "".join(f"{name} {base64.b64encode(OURS[name][1]).decode()}\n" for name in READ_BY_KAFKA)
    output = java.run_program("Znodes", "decode", libs=java.LIBS_3, stdin=lines)
    assert dict(line.split(" ", 1) for line in output.splitlines()) == READ_BY_KAFKA


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (
            b'{"version":1,"host":"h","port":9092,"jmx_port":9999,"timestamp":"1"}',
            Registration(endpoints=(Endpoint("PLAINTEXT", "h", 9092, "PLAINTEXT"),), jmx_port=9999),
        ),
        (
            b'{"version":3,"host":"h","port":9092,"jmx_port":-1,"timestamp":"1",'
            b'"endpoints":["ssl://h:9093"],"rack":"r"}',
            Registration(endpoints=(Endpoint("SSL", "h", 9093, "SSL"),), rack="r"),
        ),
        (
            b'{"version":9,"jmx_port":-1,"endpoints":["In://:-1"],"of tomorrow":[],'
            b'"listener_security_protocol_map":{"in":"SSL"}}',
            Registration(endpoints=(Endpoint("IN", "", -1, "SSL"),)),
        ),
    ],
)
def test_registrations_of_other_versions(written: bytes, expected: Registration) -> None:
    assert znodes.decode_registration(5, written) == expected


def test_older_versions() -> None:
    topic = topic_znodes.decode_topic("t", b'{"version":1,"partitions":{"10":[1],"2":[3]}}')
    assert topic.topic_id is None
    assert list(topic.assignments) == [2, 10]
    assert znodes.decode_controller(b'{"version":1,"brokerid":2,"timestamp":"1"}') == ControllerZnode(2)
    change = b'{"version":1,"entity_type":"topics","entity_name":"t"}'
    assert znodes.decode_config_change("/", change) == "topics/t"
    for nothing in (b"", b"[]", b'{"version":1}', b"not json"):
        assert znodes.decode_config("/", nothing) == {}


@pytest.mark.parametrize(
    ("decode", "written", "says"),
    [
        (znodes.decode_controller, b"1", "/controller is '1': Expected `object`, got `int`; delete it"),
        (
            lambda data: znodes.decode_number(paths.CONTROLLER_EPOCH, data),
            b"x",
            "/controller_epoch is 'x': it must be a decimal number; mend or delete",
        ),
        (
            lambda data: znodes.decode_registration(5, data),
            b'{"version":0,"jmx_port":1}',
            "/brokers/ids/5 .* version 0 is unknown; restart that broker",
        ),
        (
            lambda data: znodes.decode_registration(5, data),
            b'{"version":4,"jmx_port":1,"endpoints":["h:1"]}',
            "endpoint 'h:1' must be LISTENER://host:port",
        ),
        (
            lambda data: topic_znodes.decode_topic("t", data),
            b'{"partitions":{"x":[1]}}',
            "/brokers/topics/t .*invalid literal",
        ),
        (lambda data: topic_znodes.decode_topic("t", data), b'{"partitions":{"0":[]}}', "has no replicas"),
        (
            lambda data: topic_znodes.decode_topic("t", data),
            b'{"partitions":{},"topic_id":"AAAA"}',
            "a topic id has 16 bytes, not 3",
        ),
        (
            lambda data: topic_znodes.decode_state(paths.state("t", 0), data),
            b'{"leader":"1"}',
            r"/brokers/topics/t/partitions/0/state .*Expected `int`, got `str` - at `\$.leader`",
        ),
        (
            lambda data: znodes.decode_config("/config/topics/t", data),
            b'{"config":{"a":1}}',
            "/config/topics/t .*; set that setting again",
        ),
        (
            znodes.decode_producer_ids,
            b'{"broker":1,"block_start":"0","block_end":"x"}',
            "write a block beyond all ids",
        ),
        (
            lambda data: acl_znodes.decode_entries("/kafka-acl/Topic/t", data),
            b'{"acls":[{"principal":"User:a","permissionType":"Allow","operation":"Fly","host":"*"}]}',
            "/kafka-acl/Topic/t .*'Fly' is no operation or permission; mend or delete",
        ),
        (
            znodes.decode_reassignments,
            b'{"partitions":[{"topic":"t"}]}',
            "missing required field `partition`",
        ),
    ],
)
def test_what_cannot_be_acted_on(decode: Callable[[bytes], Any], written: bytes, says: str) -> None:
    with pytest.raises(BadZnode, match=says):
        decode(written)
