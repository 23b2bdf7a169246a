"""An asyncio client for Apache Kafka and logd: `Client`, `Producer`, `Consumer`, `Admin`; errors in `errors`.

    async with Client("localhost:9092") as client, Producer(client) as producer:
        await producer.send_and_wait("orders", b"1 apple", key=b"ann")

docs/client.md shows how to use it. `BatchProducer`, `TransactionalProducer` and `BatchFetcher` are the layer
below: they work on batches, for programs such as connectors.

A name is imported when it is first used: a command that lists a cluster's topics does not wait for producers
and consumers to be loaded.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from kafka_client.first_use import at_first_use

if os.environ.get("MILLSTREAM_NO_EXTENSIONS"):
    from kafka_client.uncompiled import use_sources

    use_sources()

if TYPE_CHECKING:
    from kafka_client.admin.admin import Admin
    from kafka_client.admin.configs import ConfigEntry, ConfigOp, ResourceType
    from kafka_client.admin.elections import ElectionType
    from kafka_client.admin.groups import GroupDescription, GroupMemberDescription, ListedGroup
    from kafka_client.admin.log_dirs import LogDir, ReplicaInfo
    from kafka_client.admin.offsets import OffsetSpec
    from kafka_client.admin.reassignments import OngoingReassignment
    from kafka_client.admin.topics import ClusterDescription, NewTopic
    from kafka_client.admin.transactions import ActiveProducer, DescribedTransaction, ListedTransaction
    from kafka_client.backoff import Backoff
    from kafka_client.cluster.cluster import Client
    from kafka_client.cluster.metadata import (
        BrokerNode,
        ClusterMetadata,
        OffsetAndMetadata,
        PartitionMetadata,
        TopicMetadata,
    )
    from kafka_client.fetcher.fetched import Fetched
    from kafka_client.fetcher.fetcher import BatchFetcher
    from kafka_client.fetcher.offsets import IsolationLevel, ListedOffset
    from kafka_client.group.consumer import Consumer
    from kafka_client.group.consumer_record import ConsumerRecord
    from kafka_client.group.group import GroupMember, GroupProtocol
    from kafka_client.producer.group_metadata import GroupMetadata
    from kafka_client.producer.identity import Identity
    from kafka_client.producer.pending_record import PendingRecord
    from kafka_client.producer.producer import NO_TIMEOUT_MS, BatchProducer
    from kafka_client.producer.record_metadata import RecordMetadata
    from kafka_client.producer.record_producer import Producer
    from kafka_client.producer.transactional import TransactionalProducer
    from kafka_client.records.partitioning import murmur2, partition_for_key
    from kafka_client.security.secret import Secret
    from kafka_client.security.settings import SecuritySettings
    from kafka_client.security.token import Token
    from kafka_client.topic_partition import TopicPartition

__all__ = [
    "NO_TIMEOUT_MS",
    "ActiveProducer",
    "Admin",
    "Backoff",
    "BatchFetcher",
    "BatchProducer",
    "BrokerNode",
    "Client",
    "ClusterDescription",
    "ClusterMetadata",
    "ConfigEntry",
    "ConfigOp",
    "Consumer",
    "ConsumerRecord",
    "DescribedTransaction",
    "ElectionType",
    "Fetched",
    "GroupDescription",
    "GroupMember",
    "GroupMemberDescription",
    "GroupMetadata",
    "GroupProtocol",
    "Identity",
    "IsolationLevel",
    "ListedGroup",
    "ListedOffset",
    "ListedTransaction",
    "LogDir",
    "NewTopic",
    "OffsetAndMetadata",
    "OffsetSpec",
    "OngoingReassignment",
    "PartitionMetadata",
    "PendingRecord",
    "Producer",
    "RecordMetadata",
    "ReplicaInfo",
    "ResourceType",
    "Secret",
    "SecuritySettings",
    "Token",
    "TopicMetadata",
    "TopicPartition",
    "TransactionalProducer",
    "murmur2",
    "partition_for_key",
]

_MODULES = {
    "kafka_client.backoff": ("Backoff",),
    "kafka_client.admin.admin": ("Admin",),
    "kafka_client.admin.configs": (
        "ConfigEntry",
        "ConfigOp",
        "ResourceType",
    ),
    "kafka_client.admin.elections": ("ElectionType",),
    "kafka_client.admin.groups": (
        "GroupDescription",
        "GroupMemberDescription",
        "ListedGroup",
    ),
    "kafka_client.admin.log_dirs": (
        "LogDir",
        "ReplicaInfo",
    ),
    "kafka_client.admin.offsets": ("OffsetSpec",),
    "kafka_client.admin.reassignments": ("OngoingReassignment",),
    "kafka_client.admin.topics": (
        "ClusterDescription",
        "NewTopic",
    ),
    "kafka_client.admin.transactions": (
        "ActiveProducer",
        "DescribedTransaction",
        "ListedTransaction",
    ),
    "kafka_client.cluster.cluster": ("Client",),
    "kafka_client.cluster.metadata": (
        "BrokerNode",
        "ClusterMetadata",
        "OffsetAndMetadata",
        "PartitionMetadata",
        "TopicMetadata",
    ),
    "kafka_client.fetcher.fetched": ("Fetched",),
    "kafka_client.fetcher.fetcher": ("BatchFetcher",),
    "kafka_client.fetcher.offsets": (
        "IsolationLevel",
        "ListedOffset",
    ),
    "kafka_client.group.consumer": ("Consumer",),
    "kafka_client.group.consumer_record": ("ConsumerRecord",),
    "kafka_client.group.group": (
        "GroupMember",
        "GroupProtocol",
    ),
    "kafka_client.producer.group_metadata": ("GroupMetadata",),
    "kafka_client.producer.identity": ("Identity",),
    "kafka_client.producer.pending_record": ("PendingRecord",),
    "kafka_client.producer.record_metadata": ("RecordMetadata",),
    "kafka_client.producer.record_producer": ("Producer",),
    "kafka_client.producer.producer": (
        "NO_TIMEOUT_MS",
        "BatchProducer",
    ),
    "kafka_client.producer.transactional": ("TransactionalProducer",),
    "kafka_client.security.secret": ("Secret",),
    "kafka_client.security.settings": ("SecuritySettings",),
    "kafka_client.security.token": ("Token",),
    "kafka_client.records.partitioning": ("murmur2", "partition_for_key"),
    "kafka_client.topic_partition": ("TopicPartition",),
}
__getattr__ = at_first_use(__name__, _MODULES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
