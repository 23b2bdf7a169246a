"""Changes of the cluster's metadata that clients request of broker 1 while it is the controller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kafka_client.errors import ErrorCode
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kafka_client.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kafka_client.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from kafka_client.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from kafka_client.wire.messages.find_coordinator import FindCoordinatorRequest
from kafka_client.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafka_client.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from logd.metadata.controller.core import Controller
from logd.metadata.image import Change, ClusterImage, PartitionImage
from logd.metadata.serving import ServingController
from tests.logd.api_cluster.conftest import TOPIC, Cluster

NEW = "new"
BAD_FACTOR = ErrorCode.INVALID_REPLICATION_FACTOR
BAD_ASSIGNMENT = ErrorCode.INVALID_REPLICA_ASSIGNMENT


def create(cluster: Cluster, validate_only: bool = False, **fields: Any) -> Any:
    topic = CreatableTopic(name=NEW, **fields)
    request = CreateTopicsRequest(topics=[topic], validate_only=validate_only)
    return cluster.ask(request, 7).topics[0]


def states(cluster: Cluster, name: str = NEW) -> list[PartitionImage]:
    topic = cluster.broker.image.topics[name]
    return [cluster.broker.image.partitions[TopicPartition(name, index)] for index in range(topic.partitions)]


def assigned(*replicas: Sequence[int]) -> list[CreatableReplicaAssignment]:
    return [
        CreatableReplicaAssignment(partition_index=index, broker_ids=list(ids))
        for index, ids in enumerate(replicas)
    ]


def test_a_topic_is_placed_with_the_factor_asked_for(cluster: Cluster) -> None:
    result = create(cluster, num_partitions=6, replication_factor=3)
    assert (result.error_code, result.num_partitions, result.replication_factor) == (0, 6, 3)
    assert result.topic_id == cluster.broker.image.topics[NEW].topic_id
    assert "cleanup.policy" in {config.name for config in result.configs}
    for state in states(cluster):
        assert sorted(state.replicas) == [1, 2, 3]
        assert state.leader == state.replicas[0]


def test_the_broker_has_defaults(cluster: Cluster) -> None:
    result = create(cluster, num_partitions=-1, replication_factor=-1)
    assert (result.error_code, result.num_partitions, result.replication_factor) == (0, 1, 1)


@pytest.mark.parametrize("factor", [4, 0, -2])
def test_factors_that_are_refused(cluster: Cluster, factor: int) -> None:
    result = create(cluster, num_partitions=1, replication_factor=factor)
    assert (result.error_code, NEW in cluster.broker.image.topics) == (BAD_FACTOR, False)


def test_an_assignment_is_taken_as_it_is(cluster: Cluster) -> None:
    fields = {"num_partitions": -1, "replication_factor": -1}
    result = create(cluster, assignments=assigned([3, 1], [2, 3]), **fields)
    assert (result.error_code, result.num_partitions, result.replication_factor) == (0, 2, 2)
    assert [state.replicas for state in states(cluster)] == [(3, 1), (2, 3)]


@pytest.mark.parametrize("replicas", [[[1, 1]], [[4]], [[1], [1, 2]], [[]]])
def test_assignments_that_are_refused(cluster: Cluster, replicas: list[list[int]]) -> None:
    fields = {"num_partitions": -1, "replication_factor": -1}
    assert create(cluster, assignments=assigned(*replicas), **fields).error_code == BAD_ASSIGNMENT
    assert NEW not in cluster.broker.image.topics


def test_validation_writes_nothing(cluster: Cluster) -> None:
    result = create(cluster, validate_only=True, num_partitions=2, replication_factor=2)
    assert (result.error_code, result.num_partitions, result.replication_factor) == (0, 2, 2)
    assert result.topic_id == bytes(16)
    assert create(cluster, True, num_partitions=2, replication_factor=9).error_code == BAD_FACTOR
    assert NEW not in cluster.broker.image.topics


def test_topics_grow_as_they_are_placed_or_assigned(cluster: Cluster) -> None:
    create(cluster, num_partitions=1, replication_factor=2)

    def grow(count: int, *replicas: list[int], validate_only: bool = False) -> int:
        rows = [CreatePartitionsAssignment(broker_ids=ids) for ids in replicas]
        topic = CreatePartitionsTopic(name=NEW, count=count, assignments=rows or None)
        request = CreatePartitionsRequest(topics=[topic], validate_only=validate_only)
        return cluster.ask(request, 3).results[0].error_code  # type: ignore[no-any-return]

    assert grow(3, validate_only=True) == 0
    assert len(states(cluster)) == 1
    assert grow(3) == 0
    assert [len(state.replicas) for state in states(cluster)] == [2, 2, 2]
    assert grow(4, [2]) == BAD_ASSIGNMENT
    assert grow(4, [3, 2], [1, 2]) == BAD_ASSIGNMENT
    assert grow(4, [3, 2]) == 0
    assert states(cluster)[3].replicas == (3, 2)
    assert grow(4) == ErrorCode.INVALID_PARTITIONS


def elect(cluster: Cluster, kind: int, *indexes: int) -> dict[int, int]:
    topics = [TopicPartitions(topic=TOPIC, partitions=list(indexes))] if indexes else None
    answer = cluster.ask(ElectLeadersRequest(election_type=kind, topic_partitions=topics), 2)
    assert answer.error_code == (0 if kind < 2 else ErrorCode.INVALID_REQUEST)
    return {
        row.partition_id: row.error_code
        for topic in answer.replica_election_results
        for row in topic.partition_result
    }


def test_leaders_are_elected(cluster: Cluster) -> None:
    away = PartitionImage(replicas=(1, 2, 3), isr=(1, 2, 3), leader=2, leader_epoch=6)
    cluster.apply(away.as_change(TopicPartition(TOPIC, 0)))
    assert elect(cluster, 0, 0, 1, 3, 99) == {
        0: 0,
        1: ErrorCode.ELECTION_NOT_NEEDED,
        3: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        99: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert cluster.broker.image.partitions[TopicPartition(TOPIC, 0)].leader == 1
    assert elect(cluster, 1) == {3: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE}
    assert elect(cluster, 7, 0) == {0: ErrorCode.INVALID_REQUEST}


def test_partitions_are_reassigned(cluster: Cluster) -> None:
    def reassign(index: int, replicas: list[int] | None, allow: bool = True) -> int:
        topic = ReassignableTopic(
            name=TOPIC, partitions=[ReassignablePartition(partition_index=index, replicas=replicas)]
        )
        request = AlterPartitionReassignmentsRequest(topics=[topic], allow_replication_factor_change=allow)
        answer = cluster.ask(request, 1)
        assert answer.allow_replication_factor_change is allow
        return answer.responses[0].partitions[0].error_code  # type: ignore[no-any-return]

    assert reassign(5, [2, 3]) == 0
    state = cluster.broker.image.partitions[TopicPartition(TOPIC, 5)]
    assert (state.adding, state.removing) == ((3,), (1,))
    assert reassign(5, None) == 0
    assert reassign(5, None) == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    assert reassign(5, [2, 9]) == BAD_ASSIGNMENT
    assert reassign(5, [2], allow=False) == BAD_FACTOR
    assert reassign(99, [2]) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(("name", "code"), [("3", 0), ("", 0), ("4", ErrorCode.INVALID_REQUEST)])
def test_settings_of_every_broker_that_is_alive(cluster: Cluster, name: str, code: int) -> None:
    config = AlterableConfig(name="background.threads", value="7")
    resource = AlterConfigsResource(resource_type=4, resource_name=name, configs=[config])
    answer = cluster.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert answer.responses[0].error_code == code
    assert (cluster.broker.image.broker_configs.get(name) is not None) is (code == 0)
    assert (cluster.broker.config.background_threads == 7) is (name == "")


def test_topics_that_are_only_asked_about_are_placed(cluster: Cluster) -> None:
    cluster.ask(MetadataRequest(topics=[MetadataRequestTopic(name=NEW)]), 12)
    cluster.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["group"]), 4)
    for name in (NEW, "__consumer_offsets"):
        assert {len(state.replicas) for state in states(cluster, name)} == {1}
    assert {state.leader for state in states(cluster, "__consumer_offsets")} == {1, 2, 3}


class Store:
    """A metadata store that keeps changes in a list."""

    def __init__(self) -> None:
        self.written: list[Change] = []

    async def write(self, changes: list[Change]) -> None:
        self.written += changes


@pytest.fixture
def published(cluster: Cluster) -> list[Change]:
    """Make broker 1 the controller, with an image of its own; return the list of its published changes."""
    changes: list[Change] = []

    def publish(published: list[Change]) -> None:
        changes.extend(published)
        cluster.apply(*published)

    controller = Controller(ClusterImage.of(cluster.broker.image.as_changes()), epoch=3)
    cluster.broker.catalog.controller = ServingController(
        controller, Store(), publish=publish, resigned=lambda: None
    )
    return changes


def test_the_controller_that_is_on_this_broker_decides(cluster: Cluster, published: list[Change]) -> None:
    result = create(cluster, num_partitions=2, replication_factor=3)
    assert (result.error_code, result.topic_id) == (0, bytes.fromhex(published[0]["id"]))
    assert [change["type"] for change in published] == ["topic", "partition", "partition"]
    published.clear()
    assert create(cluster, num_partitions=2, replication_factor=3).error_code == 36
    assert elect(cluster, 0, 99) == {99: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert published == []


def test_and_publishes_nothing_for_validation(cluster: Cluster, published: list[Change]) -> None:
    assert create(cluster, True, num_partitions=2, replication_factor=3).error_code == 0
    assert published == []


def test_and_says_when_it_has_resigned(cluster: Cluster, published: list[Change]) -> None:
    controller = cluster.broker.catalog.controller
    assert isinstance(controller, ServingController)
    controller.resign()
    assert create(cluster, num_partitions=1, replication_factor=1).error_code == ErrorCode.NOT_CONTROLLER
    topic = ReassignableTopic(name=TOPIC, partitions=[ReassignablePartition(partition_index=0, replicas=[2])])
    for request, version in (
        (AlterPartitionReassignmentsRequest(topics=[topic]), 0),
        (ElectLeadersRequest(topic_partitions=[TopicPartitions(topic=TOPIC, partitions=[0])]), 2),
    ):
        assert cluster.ask(request, version).error_code == ErrorCode.NOT_CONTROLLER
    assert published == []
