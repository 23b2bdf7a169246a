"""OffsetCommit, OffsetFetch and OffsetDelete, in every version, over a raw connection."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_client.errors import ErrorCode
from kafka_client.wire.messages.delete_topics import DeleteTopicsRequest
from kafka_client.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafka_client.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kafka_client.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tests.support.raw_client import RawClient

NOWHERE = b"no such topic id"


def commit(
    client: RawClient, group: str, name: str, offsets: dict[int, int], version: int = 9, **facts: Any
) -> list[int]:
    """Commit offsets without membership; return the error codes in order of partitions."""
    partitions = [
        OffsetCommitRequestPartition(
            partition_index=index,
            committed_offset=offset,
            committed_leader_epoch=4,
            committed_metadata="meta",
        )
        for index, offset in offsets.items()
    ]
    topics = [OffsetCommitRequestTopic(name=name, partitions=partitions, **facts)]
    response = client.request(OffsetCommitRequest(group_id=group, topics=topics), version)
    return [partition.error_code for partition in response.topics[0].partitions]


def fetch_old(client: RawClient, group: str, name: str | None, version: int) -> dict[tuple[str, int], int]:
    """Return the offsets by OffsetFetch 1 to 7; without a topic name, all offsets of the group."""
    topics = None if name is None else [OffsetFetchRequestTopic(name=name, partition_indexes=[0, 1, 2])]
    response = client.request(OffsetFetchRequest(group_id=group, topics=topics), version)
    assert response.error_code == 0
    return {
        (topic.name, partition.partition_index): partition.committed_offset
        for topic in response.topics
        for partition in topic.partitions
    }


def fetch_group(
    client: RawClient, group: str, topics: list[OffsetFetchRequestTopics] | None, version: int = 9
) -> Any:
    """Fetch the offsets of one group by OffsetFetch 8 to 10."""
    group_request = OffsetFetchRequestGroup(group_id=group, topics=topics)
    response = client.request(OffsetFetchRequest(groups=[group_request], require_stable=True), version)
    assert response.groups[0].error_code == 0
    return response.groups[0]


@pytest.mark.parametrize("version", range(2, 10))
def test_commit(client: RawClient, group: str, topic: str, version: int) -> None:
    assert commit(client, group, topic, {0: 5, 1: 6}, version) == [0, 0]
    topics = [OffsetFetchRequestTopics(name=topic, partition_indexes=[0, 1, 2])]
    partitions = fetch_group(client, group, topics).topics[0].partitions
    assert [partition.committed_offset for partition in partitions] == [5, 6, -1]
    assert [partition.metadata for partition in partitions] == ["meta", "meta", ""]
    epoch = 4 if version >= 6 else -1
    assert [partition.committed_leader_epoch for partition in partitions] == [epoch, epoch, -1]


@pytest.mark.parametrize("version", range(1, 8))
def test_fetch_of_one_group(client: RawClient, group: str, topic: str, version: int) -> None:
    commit(client, group, topic, {0: 5, 1: 6})
    assert fetch_old(client, group, topic, version) == {(topic, 0): 5, (topic, 1): 6, (topic, 2): -1}
    if version >= 2:
        assert fetch_old(client, group, None, version) == {(topic, 0): 5, (topic, 1): 6}
        assert fetch_old(client, "nobody", None, version) == {}


@pytest.mark.parametrize("version", [8, 9])
def test_fetch_of_several_groups(client: RawClient, group: str, topic: str, version: int) -> None:
    commit(client, group, topic, {0: 5})
    commit(client, group + "b", topic, {2: 7})
    requests = [
        OffsetFetchRequestGroup(group_id=group, topics=None),
        OffsetFetchRequestGroup(group_id=group + "b", topics=None),
        OffsetFetchRequestGroup(group_id="nobody", topics=None),
    ]
    groups = client.request(OffsetFetchRequest(groups=requests), version).groups
    offsets = {
        fetched.group_id: [
            (topic.name, partition.partition_index, partition.committed_offset)
            for topic in fetched.topics
            for partition in topic.partitions
        ]
        for fetched in groups
    }
    assert offsets == {group: [(topic, 0, 5)], group + "b": [(topic, 2, 7)], "nobody": []}


def test_by_topic_id(client: RawClient, group: str, topic: str, topic_id: bytes) -> None:
    assert commit(client, group, "", {0: 5, 3: 1}, 10, topic_id=topic_id) == [
        0,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert commit(client, group, "", {0: 5}, 10, topic_id=NOWHERE) == [ErrorCode.UNKNOWN_TOPIC_ID]
    topics = [
        OffsetFetchRequestTopics(topic_id=NOWHERE, partition_indexes=[0]),
        OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=[0, 1]),
    ]
    unknown, present = fetch_group(client, group, topics, 10).topics
    assert (unknown.topic_id, unknown.partitions[0].error_code) == (NOWHERE, ErrorCode.UNKNOWN_TOPIC_ID)
    assert present.topic_id == topic_id
    assert [partition.committed_offset for partition in present.partitions] == [5, -1]
    everything = fetch_group(client, group, None, 10).topics
    assert [(row.topic_id, row.partitions[0].committed_offset) for row in everything] == [(topic_id, 5)]


@pytest.mark.parametrize("version", range(2, 10))
def test_what_does_not_exist_is_not_committed(
    client: RawClient, group: str, topic: str, version: int
) -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert commit(client, group, "no-such-topic", {0: 5}, version) == [unknown]
    assert commit(client, group, topic, {3: 5, 1: 6, -1: 7}, version) == [unknown, 0, unknown]
    assert fetch_old(client, group, None, 7) == {(topic, 1): 6}


def test_delete_of_offsets(client: RawClient, group: str, topic: str) -> None:
    commit(client, group, topic, {0: 5, 1: 6})
    request = OffsetDeleteRequest(
        group_id=group,
        topics=[
            OffsetDeleteRequestTopic(
                name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=0)]
            ),
            OffsetDeleteRequestTopic(
                name="gone", partitions=[OffsetDeleteRequestPartition(partition_index=0)]
            ),
        ],
    )
    response = client.request(request, 0)
    codes = {row.name: row.partitions[0].error_code for row in response.topics}
    assert codes == {topic: 0, "gone": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert fetch_old(client, group, None, 7) == {(topic, 1): 6}
    request.group_id = "nobody"
    assert client.request(request, 0).error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_offsets_go_with_their_topic(client: RawClient, group: str, topic: str) -> None:
    commit(client, group, topic, {0: 5})
    assert client.request(DeleteTopicsRequest(topic_names=[topic]), 5).responses[0].error_code == 0
    assert fetch_old(client, group, None, 7) == {}
