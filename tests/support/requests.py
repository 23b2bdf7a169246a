"""Requests that tests of several kinds make of a broker, each for one topic, group or setting."""

from __future__ import annotations

from collections.abc import Mapping

from kafka_client.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kafka_client.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kafka_client.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kafka_client.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafka_client.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

TOPIC_CONFIG, BROKER_CONFIG = 2, 4
"""Types of a resource that has settings."""


def topic_creation(name: str, partitions: int, configs: Mapping[str, str]) -> CreateTopicsRequest:
    """Return a request that creates one topic with one replica."""
    settings = [CreatableTopicConfig(name=key, value=value) for key, value in configs.items()]
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=settings)
    return CreateTopicsRequest(topics=[topic], timeout_ms=10_000)


def topic_growth(name: str, partitions: int) -> CreatePartitionsRequest:
    """So many partitions in all."""
    topic = CreatePartitionsTopic(name=name, count=partitions, assignments=None)
    return CreatePartitionsRequest(topics=[topic])


def record_deletion(topic: str, partition: int, offset: int) -> DeleteRecordsRequest:
    """Everything before the offset."""
    where = DeleteRecordsPartition(partition_index=partition, offset=offset)
    return DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=[where])])


def setting_change(kind: int, name: str, key: str, value: str) -> IncrementalAlterConfigsRequest:
    """Return a request that sets one setting of a topic or a broker (`kind`)."""
    resource = AlterConfigsResource(
        resource_type=kind, resource_name=name, configs=[AlterableConfig(name=key, value=value)]
    )
    return IncrementalAlterConfigsRequest(resources=[resource])


def offset_commit(
    group: str, topic: str, partition: int, offset: int, *, generation: int = -1, member: str = ""
) -> OffsetCommitRequest:
    """Return a commit of one offset, by a member of the generation or (-1) from outside the group."""
    where = OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member,
        topics=[OffsetCommitRequestTopic(name=topic, partitions=[where])],
    )
