"""The asyncio client the other packages use; works against Apache Kafka and logd alike.

A name is imported when it is first asked for: a command that wants a cluster's topics does not wait for
producers and consumers to be loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logd.first_use import at_first_use

if TYPE_CHECKING:
    from logd.backoff import Backoff
    from logd.client.admin.admin import Admin
    from logd.client.admin.configs import ConfigEntry, ConfigOp, ResourceType
    from logd.client.admin.elections import ElectionType
    from logd.client.admin.groups import GroupDescription, GroupMemberDescription, ListedGroup
    from logd.client.admin.log_dirs import LogDir, ReplicaInfo
    from logd.client.admin.offsets import OffsetSpec
    from logd.client.admin.reassignments import OngoingReassignment
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
    from logd.client.producer.producer import NO_TIMEOUT_MS, BatchProducer
    from logd.client.producer.transactional import TransactionalProducer
    from logd.client.security.secret import Secret
    from logd.client.security.settings import SecuritySettings
    from logd.client.security.token import Token
    from logd.records.partitioning import murmur2, partition_for_key
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
    "logd.backoff": ("Backoff",),
    "logd.client.admin.admin": ("Admin",),
    "logd.client.admin.configs": (
        "ConfigEntry",
        "ConfigOp",
        "ResourceType",
    ),
    "logd.client.admin.elections": ("ElectionType",),
    "logd.client.admin.groups": (
        "GroupDescription",
        "GroupMemberDescription",
        "ListedGroup",
    ),
    "logd.client.admin.log_dirs": (
        "LogDir",
        "ReplicaInfo",
    ),
    "logd.client.admin.offsets": ("OffsetSpec",),
    "logd.client.admin.reassignments": ("OngoingReassignment",),
    "logd.client.admin.topics": (
        "ClusterDescription",
        "NewTopic",
    ),
    "logd.client.admin.transactions": (
        "ActiveProducer",
        "DescribedTransaction",
        "ListedTransaction",
    ),
    "logd.client.cluster.cluster": ("Client",),
    "logd.client.cluster.metadata": (
        "BrokerNode",
        "ClusterMetadata",
        "OffsetAndMetadata",
        "PartitionMetadata",
        "TopicMetadata",
    ),
    "logd.client.fetcher.fetched": ("Fetched",),
    "logd.client.fetcher.fetcher": ("BatchFetcher",),
    "logd.client.fetcher.offsets": (
        "IsolationLevel",
        "ListedOffset",
    ),
    "logd.client.group.consumer": ("Consumer",),
    "logd.client.group.group": (
        "GroupMember",
        "GroupProtocol",
    ),
    "logd.client.producer.group_metadata": ("GroupMetadata",),
    "logd.client.producer.identity": ("Identity",),
    "logd.client.producer.producer": (
        "NO_TIMEOUT_MS",
        "BatchProducer",
    ),
    "logd.client.producer.transactional": ("TransactionalProducer",),
    "logd.client.security.secret": ("Secret",),
    "logd.client.security.settings": ("SecuritySettings",),
    "logd.client.security.token": ("Token",),
    "logd.records.partitioning": ("murmur2", "partition_for_key"),
    "logd.topic_partition": ("TopicPartition",),
}
__getattr__ = at_first_use(__name__, _MODULES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
