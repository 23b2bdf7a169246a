"""Requests for partitions that broker 1 does not lead: followed, on other brokers, in a folder that failed.

The codes are Kafka's ReplicaManager's: KAFKA_STORAGE_ERROR for a replica here that is offline, though another
broker leads; a follower checks the leader epoch before it says that it does not lead.
"""

from __future__ import annotations

from typing import Any

import pytest

from kafka_client.errors import ErrorCode
from kafka_client.records import build_batch
from kafka_client.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kafka_client.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kafka_client.wire.messages.describe_producers import DescribeProducersRequest
from kafka_client.wire.messages.describe_producers import TopicRequest as ProducersOf
from kafka_client.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka_client.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kafka_client.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kafka_client.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.logd.api_cluster.conftest import EXTERNAL, INTERNAL, TOPIC, Cluster

OK = ErrorCode.NONE
ELSEWHERE, OFFLINE = ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR
UNKNOWN, NO_REPLICA = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.REPLICA_NOT_AVAILABLE
FENCED, AHEAD = ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH

FOLLOWED = (1, 2)
BY_PARTITION = {0: OK, 1: ELSEWHERE, 2: ELSEWHERE, 3: ELSEWHERE, 4: ELSEWHERE, 5: OFFLINE, 6: UNKNOWN}
LEADERS = {1: (2, 6), 2: (3, 7), 3: (-1, 8), 4: (3, 9)}


def named(cluster: Cluster, topic: Any, by_id: bool) -> Any:
    if by_id:
        topic.topic_id = cluster.broker.catalog.topics[TOPIC].topic_id
    elif hasattr(topic, "name"):
        topic.name = TOPIC
    else:
        topic.topic = TOPIC
    return topic


def produce(cluster: Cluster, version: int, *partitions: int, **more: Any) -> Any:
    batch = build_batch([(1, None, b"v", ())])
    data = [PartitionProduceData(index=index, records=batch) for index in partitions]
    topic = named(cluster, TopicProduceData(partition_data=data), version >= 13)
    return cluster.ask(ProduceRequest(acks=-1, topic_data=[topic]), version, **more)


def fetch(
    cluster: Cluster,
    version: int,
    *partitions: int,
    epoch: int = -1,
    max_wait_ms: int = 30_000,
    **more: Any,
) -> Any:
    requested = [
        FetchPartition(partition=index, current_leader_epoch=epoch, partition_max_bytes=100)
        for index in partitions
    ]
    topic = named(cluster, FetchTopic(partitions=requested), version >= 13)
    request = FetchRequest(max_bytes=1000, min_bytes=1, max_wait_ms=max_wait_ms, topics=[topic])
    return cluster.ask(request, version, **more)


def codes(answer: Any) -> dict[int, int]:
    return {row.index: row.error_code for row in answer.responses[0].partition_responses}


def leaders(rows: Any) -> list[tuple[int, int]]:
    return [(row.current_leader.leader_id, row.current_leader.leader_epoch) for row in rows]


@pytest.mark.parametrize("version", [3, 9, 10, 13])
def test_produce(standing: Cluster, version: int) -> None:
    answer = produce(standing, version, *BY_PARTITION)
    assert codes(answer) == BY_PARTITION
    endpoints = leaders(answer.responses[0].partition_responses)
    assert endpoints == [LEADERS.get(index, (-1, -1)) if version >= 10 else (-1, -1) for index in range(7)]
    nodes = [(node.node_id, node.host, node.port, node.rack) for node in answer.node_endpoints]
    assert nodes == ([(2, "out2", 9092, "r2")] if version >= 10 else [])


def test_one_partition_by_the_listener_that_its_leader_has(standing: Cluster) -> None:
    answer = produce(standing, 12, 2, endpoint=INTERNAL)
    assert leaders(answer.responses[0].partition_responses) == [(3, 7)]
    assert [(node.node_id, node.host) for node in answer.node_endpoints] == [(3, "in3")]


@pytest.mark.parametrize("version", [4, 12, 15, 16, 18])
def test_fetch(standing: Cluster, version: int) -> None:
    """Errors are answered at once, without the wait of half a minute that the request allows.

    From version 11 on a follower serves consumers (KIP-392).
    """
    answer = fetch(standing, version, *BY_PARTITION)
    rows = answer.responses[0].partitions
    served = dict.fromkeys(FOLLOWED, OK) if version >= 11 else {}
    assert {row.partition_index: row.error_code for row in rows} == BY_PARTITION | served
    named = {index: leader for index, leader in LEADERS.items() if version >= 16 and index not in served}
    assert leaders(rows) == [named.get(index, (-1, -1)) for index in range(7)]
    assert answer.node_endpoints == []


def test_a_fenced_reader_is_told_the_leader(standing: Cluster) -> None:
    answer = fetch(standing, 17, 0, epoch=4)
    (row,) = answer.responses[0].partitions
    assert (row.error_code, leaders([row])) == (FENCED, [(1, 5)])
    assert [(node.node_id, node.host) for node in answer.node_endpoints] == [(1, "out1")]


@pytest.mark.parametrize(("epoch", "code"), [(-1, ELSEWHERE), (5, FENCED), (6, ELSEWHERE), (7, AHEAD)])
def test_a_follower_checks_the_leader_epoch_first(standing: Cluster, epoch: int, code: ErrorCode) -> None:
    for version, served in ((10, code), (12, OK if code is ELSEWHERE else code)):
        (row,) = fetch(standing, version, 1, epoch=epoch, max_wait_ms=0).responses[0].partitions
        assert row.error_code == served
    assert list_offsets(standing, epoch=epoch)[1] == code
    assert epoch_ends(standing, epoch=epoch)[1] == code


def test_a_standalone_broker_tells_no_leaders(node: Cluster) -> None:
    node.run(node.broker.catalog.create(TOPIC, 1, {}))
    answer = fetch(node, 17, 0, epoch=9)
    assert leaders(answer.responses[0].partitions) == [(-1, -1)]
    assert answer.responses[0].partitions[0].error_code == AHEAD
    assert answer.node_endpoints == []


def list_offsets(cluster: Cluster, epoch: int = -1) -> dict[int, int]:
    partitions = [
        ListOffsetsPartition(partition_index=index, timestamp=-1, current_leader_epoch=epoch)
        for index in BY_PARTITION
    ]
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=TOPIC, partitions=partitions)])
    rows = cluster.ask(request, 7).topics[0].partitions
    return {row.partition_index: row.error_code for row in rows}


def epoch_ends(cluster: Cluster, epoch: int = -1) -> dict[int, int]:
    partitions = [
        OffsetForLeaderPartition(partition=index, current_leader_epoch=epoch, leader_epoch=0)
        for index in BY_PARTITION
    ]
    request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=TOPIC, partitions=partitions)])
    rows = cluster.ask(request, 4).topics[0].partitions
    return {row.partition: row.error_code for row in rows}


def test_offsets_and_epochs(standing: Cluster) -> None:
    assert list_offsets(standing) == BY_PARTITION
    assert epoch_ends(standing) == BY_PARTITION


def test_delete_records(standing: Cluster) -> None:
    partitions = [DeleteRecordsPartition(partition_index=index, offset=0) for index in BY_PARTITION]
    topic = DeleteRecordsTopic(name=TOPIC, partitions=partitions)
    rows = standing.ask(DeleteRecordsRequest(topics=[topic]), 2).topics[0].partitions
    assert {row.partition_index: row.error_code for row in rows} == BY_PARTITION


def test_followers_know_producers_too(standing: Cluster) -> None:
    producers = ProducersOf(name=TOPIC, partition_indexes=list(BY_PARTITION))
    rows = standing.ask(DescribeProducersRequest(topics=[producers]), 0).topics[0].partitions
    followed = dict.fromkeys((1, 2), OK)
    assert {row.partition_index: row.error_code for row in rows} == BY_PARTITION | followed


def test_moves_between_folders_are_of_replicas_held_here(standing: Cluster) -> None:
    path = str(standing.broker.log_dirs.paths[0])
    topic = AlterReplicaLogDirTopic(name=TOPIC, partitions=list(BY_PARTITION))
    request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=[topic])])
    rows = standing.ask(request, 2, EXTERNAL).results[0].partitions
    expected = dict.fromkeys((1, 2), OK) | dict.fromkeys((3, 4), NO_REPLICA)
    assert {row.partition_index: row.error_code for row in rows} == BY_PARTITION | expected
