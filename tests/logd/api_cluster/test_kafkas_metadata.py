"""Metadata responses about partitions are those of a Kafka 3 broker with ZooKeeper for the same state.

java -cp "$KAFKA_3_LIBS/*" tests/java/ClusterMetadata.java > tests/logd/api_cluster/golden/metadata.txt
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kafka_client.topic_partition import TopicPartition
from kafka_client.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from logd.metadata.image import PartitionImage, replicas_offline
from tests.logd.api_cluster.conftest import ALIVE, EXTERNAL, INTERNAL, Cluster
from tests.support.java import LIBS_3, needs_javac_3, run_program

GOLDEN = Path(__file__).parent / "golden" / "metadata.txt"
TOPIC = "t"
LISTENERS = {"EXTERNAL": EXTERNAL, "INTERNAL": INTERNAL}
VERSIONS = (0, 1, 5, 6, 12)
FIRST_EPOCH = 3


def lines(listener: str, version: int) -> list[list[str]]:
    """Return the golden rows for a listener and a version, partition by partition."""
    rows = (line.split() for line in GOLDEN.read_text().splitlines() if not line.startswith("brokers"))
    return [row for row in rows if row[4:6] == [listener, str(version)]]


def ids(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(","))) if text != "-" else ()


def text(ids: Sequence[int]) -> str:
    return ",".join(map(str, ids)) or "-"


@pytest.fixture
def kafkas_cluster(node: Cluster) -> Cluster:
    """Return broker 1 of the cluster that the golden rows describe."""
    rows = lines("EXTERNAL", 0)
    node.run(node.broker.catalog.create(TOPIC, len(rows), {}))
    node.apply(*(broker.as_change() for broker in ALIVE))
    for index, (leader, replicas, isr, failed, *_) in enumerate(rows):
        tp = TopicPartition(TOPIC, index)
        state = PartitionImage(
            replicas=ids(replicas), isr=ids(isr), leader=int(leader), leader_epoch=index + FIRST_EPOCH
        )
        node.apply(state.as_change(tp), *(replicas_offline(broker, [tp]) for broker in ids(failed)))
    return node


def test_partitions_are_told_as_by_kafka(kafkas_cluster: Cluster) -> None:
    for listener, endpoint in LISTENERS.items():
        for version in VERSIONS:
            request = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])
            answer = kafkas_cluster.ask(request, version, endpoint)
            expected = lines(listener, version)
            assert len(expected) == len(answer.topics[0].partitions)
            for row, line in zip(answer.topics[0].partitions, expected, strict=True):
                assert as_told(row, version) == as_printed(line, version), line


def as_told(row: Any, version: int) -> list[str]:
    epoch = row.leader_epoch if version >= 7 else "-"
    offline = text(row.offline_replicas) if version >= 5 else "-"
    codes = f"{row.error_code} {row.leader_id} {epoch} {text(row.replica_nodes)} {text(row.isr_nodes)}"
    return [*codes.split(), offline]


def as_printed(line: list[str], version: int) -> list[str]:
    """Return the fields of a golden row that the version has."""
    code, leader, epoch, replicas, isr, offline = line[6:]
    return [code, leader, epoch if version >= 7 else "-", replicas, isr, offline if version >= 5 else "-"]


def test_brokers_are_told_as_by_kafka(kafkas_cluster: Cluster) -> None:
    printed = [line.split() for line in GOLDEN.read_text().splitlines() if line.startswith("brokers")]
    for _, listener, expected in printed:
        nodes = kafkas_cluster.broker.cluster.nodes(LISTENERS[listener])
        assert ",".join(f"{node.id}:{node.host}:{node.port}:{node.rack}" for node in nodes) == expected


@needs_javac_3
def test_kafka_tells_them_so_still() -> None:
    assert run_program("ClusterMetadata", libs=LIBS_3) == GOLDEN.read_text(encoding="utf-8")
