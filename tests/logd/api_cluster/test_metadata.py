"""Who the brokers are and who leads what, as one broker of several tells its clients.

Expected is what Kafka answers for the same state by its sources: ZkMetadataCache for Metadata, KafkaApis for
FindCoordinator. `conftest` draws the cluster.
"""

from __future__ import annotations

from typing import Any

import pytest

from kafka_client.errors import ErrorCode
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire.messages.describe_cluster import DescribeClusterRequest
from kafka_client.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from kafka_client.wire.messages.find_coordinator import FindCoordinatorRequest
from kafka_client.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from kafka_client.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from logd.config.listeners import Endpoint as Listener
from logd.metadata.image import PartitionImage, broker_gone
from tests.logd.api_cluster.conftest import EXTERNAL, INTERNAL, TOPIC, Cluster

OK, NO_LEADER = ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE
NO_LISTENER, NO_REPLICA = ErrorCode.LISTENER_NOT_FOUND, ErrorCode.REPLICA_NOT_AVAILABLE


def metadata(cluster: Cluster, version: int, endpoint: Listener = EXTERNAL) -> Any:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)], allow_auto_topic_creation=False)
    return cluster.ask(request, version, endpoint)


def partition_rows(answer: Any) -> dict[int, tuple[Any, ...]]:
    """Return by partition: error, leader, leader epoch, replicas, ISR, offline replicas."""
    return {
        row.partition_index: (
            row.error_code,
            row.leader_id,
            row.leader_epoch,
            row.replica_nodes,
            row.isr_nodes,
            row.offline_replicas,
        )
        for row in answer.topics[0].partitions
    }


def test_partitions_by_a_listener_that_one_leader_does_not_have(standing: Cluster) -> None:
    answer = metadata(standing, 12)
    assert [(node.node_id, node.host, node.port, node.rack) for node in answer.brokers] == [
        (1, "out1", 9092, "r1"),
        (2, "out2", 9092, "r2"),
    ]
    assert answer.controller_id == 2
    assert partition_rows(answer) == {
        0: (OK, 1, 5, [1, 2, 3], [1, 2, 3], []),
        1: (OK, 2, 6, [2, 1, 4], [2, 1], [4]),
        2: (NO_LISTENER, -1, 7, [3, 2, 1], [3, 2], []),
        3: (NO_LEADER, -1, 8, [4], [4], [4]),
        4: (NO_LISTENER, -1, 9, [2, 3], [3], [2]),
        5: (OK, 2, 10, [1, 2], [2], []),
    }


def test_by_the_listener_that_all_have(standing: Cluster) -> None:
    answer = metadata(standing, 13, INTERNAL)
    assert [(node.node_id, node.host) for node in answer.brokers] == [(1, "in1"), (2, "in2"), (3, "in3")]
    assert {index: row[:2] for index, row in partition_rows(answer).items()} == {
        0: (OK, 1),
        1: (OK, 2),
        2: (OK, 3),
        3: (NO_LEADER, -1),
        4: (OK, 3),
        5: (OK, 2),
    }


@pytest.mark.parametrize(("version", "code"), [(1, NO_LEADER), (5, NO_LEADER), (6, NO_LISTENER)])
def test_old_clients_are_not_told_of_listeners(standing: Cluster, version: int, code: ErrorCode) -> None:
    assert partition_rows(metadata(standing, version))[2][0] == code


def test_the_first_version_names_only_replicas_it_can_reach(standing: Cluster) -> None:
    rows = {
        row.partition_index: (row.error_code, row.leader_id, row.replica_nodes, row.isr_nodes)
        for row in metadata(standing, 0).topics[0].partitions
    }
    assert rows == {
        0: (NO_REPLICA, 1, [1, 2], [1, 2]),
        1: (NO_REPLICA, 2, [2, 1], [2, 1]),
        2: (NO_LEADER, -1, [2, 1], [2]),
        3: (NO_LEADER, -1, [], []),
        4: (NO_LEADER, -1, [2], []),
        5: (OK, 2, [1, 2], [2]),
    }


def test_answers_that_are_kept_follow_the_image(cluster: Cluster) -> None:
    assert metadata(cluster, 12).controller_id == 2
    cluster.broker.controller_changed(3)
    assert metadata(cluster, 12).controller_id == 3
    cluster.apply(broker_gone(3))
    answer = metadata(cluster, 12, INTERNAL)
    assert answer.controller_id == -1
    assert [node.node_id for node in answer.brokers] == [1, 2]
    assert partition_rows(answer)[2] == (NO_LEADER, -1, 7, [3, 2, 1], [3, 2], [3])


def test_a_topic_whose_first_leaders_follow(cluster: Cluster) -> None:
    for index in range(6):
        cluster.broker.image.partitions.pop(TopicPartition(TOPIC, index))
    cluster.broker.catalog.views_changed()
    rows = partition_rows(metadata(cluster, 12)).values()
    assert list(rows) == [(NO_LEADER, -1, -1, [], [], [])] * 6


def test_describe_cluster(standing: Cluster) -> None:
    answer = standing.ask(DescribeClusterRequest(), 1)
    assert [(node.broker_id, node.host, node.port, node.rack) for node in answer.brokers] == [
        (1, "out1", 9092, "r1"),
        (2, "out2", 9092, "r2"),
    ]
    assert answer.controller_id == 2
    assert len(standing.ask(DescribeClusterRequest(), 0, INTERNAL).brokers) == 3


def test_describe_topic_partitions(standing: Cluster) -> None:
    answer = standing.ask(DescribeTopicPartitionsRequest(topics=[TopicRequest(name=TOPIC)]), 0)
    assert partition_rows(answer) == partition_rows(metadata(standing, 12))
    for row in answer.topics[0].partitions:
        assert (row.eligible_leader_replicas, row.last_known_elr) == ([], [])


def coordinator(cluster: Cluster, key_type: int, endpoint: Listener = EXTERNAL) -> tuple[Any, ...]:
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["who"])
    (coordinator,) = cluster.ask(request, 4, endpoint).coordinators
    return coordinator.error_code, coordinator.node_id, coordinator.host, coordinator.port


@pytest.mark.parametrize(("key_type", "name"), [(0, "__consumer_offsets"), (1, "__transaction_state")])
def test_the_coordinator_is_the_leader_of_its_partition(node: Cluster, key_type: int, name: str) -> None:
    assert coordinator(node, key_type) == (OK, 1, "out1", 9092)
    node.join()
    for leader in (1, 2, 3, -1):
        state = PartitionImage(replicas=(1, 2, 3), isr=(1, 2, 3), leader=leader)
        node.apply(*(state.as_change(TopicPartition(name, index)) for index in range(50)))
        nobody = (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1, "", -1)
        assert coordinator(node, key_type, INTERNAL) == (
            nobody if leader < 0 else (OK, leader, f"in{leader}", 9093)
        )
        assert (coordinator(node, key_type) == nobody) is (leader in (-1, 3))


def test_reassignments_under_way_are_listed(standing: Cluster) -> None:
    everything = ListPartitionReassignmentsRequest(topics=None)
    one = ListPartitionReassignmentsTopics(name=TOPIC, partition_indexes=[0, 2, 99])
    some = ListPartitionReassignmentsRequest(
        topics=[one, ListPartitionReassignmentsTopics(name="absent", partition_indexes=[0])]
    )
    for request in (everything, some):
        answer = standing.ask(request, 0)
        assert answer.error_code == 0
        (topic,) = answer.topics
        (row,) = topic.partitions
        assert (topic.name, row.partition_index, row.replicas) == (TOPIC, 2, [3, 2, 1])
        assert (row.adding_replicas, row.removing_replicas) == ([2], [1])
    none = ListPartitionReassignmentsTopics(name=TOPIC, partition_indexes=[0])
    assert standing.ask(ListPartitionReassignmentsRequest(topics=[none]), 0).topics == []
