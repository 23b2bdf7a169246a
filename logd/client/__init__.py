"""The asyncio client the other packages use; works against Apache Kafka and logd alike."""

from __future__ import annotations

from logd.backoff import Backoff
from logd.client.admin.admin import Admin
from logd.client.admin.configs import ConfigEntry, ConfigOp, ResourceType
from logd.client.admin.groups import GroupDescription, GroupMemberDescription, ListedGroup
from logd.client.admin.offsets import OffsetSpec
from logd.client.admin.topics import ClusterDescription, NewTopic
from logd.client.admin.transactions import ActiveProducer, DescribedTransaction, ListedTransaction
from logd.client.cluster.cluster import Client
from logd.client.cluster.metadata import (
    BrokerNode,
    ClusterMetadata,
    OffsetAndMetadata,
    PartitionMetadata,
    TopicMetadata,
)
from logd.client.fetcher.fetched import Fetched
from logd.client.fetcher.fetcher import BatchFetcher
from logd.client.fetcher.offsets import IsolationLevel, ListedOffset
from logd.client.group.consumer import Consumer
from logd.client.group.group import GroupMember, GroupProtocol
from logd.client.producer.group_metadata import GroupMetadata
from logd.client.producer.identity import Identity
from logd.client.producer.partitioner import murmur2, partition_for_key
from logd.client.producer.producer import NO_TIMEOUT_MS, BatchProducer
from logd.client.producer.transactional import TransactionalProducer
from logd.client.security.secret import Secret
from logd.client.security.settings import SecuritySettings
from logd.client.security.token import Token
from logd.topic_partition import TopicPartition

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
    "DescribedTransaction",
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
    "NewTopic",
    "OffsetAndMetadata",
    "OffsetSpec",
    "PartitionMetadata",
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
