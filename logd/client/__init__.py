"""The asyncio client the other packages use; works against Apache Kafka and logd alike."""

from __future__ import annotations

from logd.client.admin import Admin
from logd.client.cluster import Client
from logd.client.consumer import Consumer
from logd.client.fetched import Fetched
from logd.client.fetcher import BatchFetcher
from logd.client.group import GroupMember, GroupProtocol
from logd.client.group_admin import GroupDescription, GroupMemberDescription, ListedGroup
from logd.client.metadata import (
    BrokerNode,
    ClusterMetadata,
    OffsetAndMetadata,
    PartitionMetadata,
    TopicMetadata,
    TopicPartition,
)
from logd.client.offsets import ListedOffset
from logd.client.partitioner import murmur2, partition_for_key
from logd.client.producer import NO_TIMEOUT_MS, BatchProducer
from logd.client.topic_admin import (
    ClusterDescription,
    ConfigEntry,
    ConfigOp,
    NewTopic,
    OffsetSpec,
    ResourceType,
)
from logd.client.transaction_admin import ActiveProducer, DescribedTransaction, ListedTransaction

__all__ = [
    "NO_TIMEOUT_MS",
    "ActiveProducer",
    "Admin",
    "BatchFetcher",
    "BatchProducer",
    "BrokerNode",
    "Client",
    "ClusterDescription",
    "ClusterMetadata",
    "ConfigEntry",
    "ConfigOp",
    "Consumer",
    "DescribedTransaction",
    "Fetched",
    "GroupDescription",
    "GroupMember",
    "GroupMemberDescription",
    "GroupProtocol",
    "ListedGroup",
    "ListedOffset",
    "ListedTransaction",
    "NewTopic",
    "OffsetAndMetadata",
    "OffsetSpec",
    "PartitionMetadata",
    "ResourceType",
    "TopicMetadata",
    "TopicPartition",
    "murmur2",
    "partition_for_key",
]
