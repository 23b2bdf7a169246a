"""The topics of the coordinators: what they are created with, by themselves or because a client asks."""

from __future__ import annotations

from logd.broker.topics.topic import GROUP_OFFSETS, TRANSACTION_STATE
from logd.config.broker import BrokerConfig


def partitions_of(name: str, config: BrokerConfig) -> int:
    """Return the number of partitions for a topic that is created without a given number."""
    if name == GROUP_OFFSETS:
        return config.offsets_topic_num_partitions
    if name == TRANSACTION_STATE:
        return config.transaction_state_log_num_partitions
    return config.num_partitions


def replicas_of(name: str, config: BrokerConfig) -> int:
    """Return the replication factor for a topic that is created without a given one."""
    if name == GROUP_OFFSETS:
        return config.offsets_topic_replication_factor
    if name == TRANSACTION_STATE:
        return config.transaction_state_log_replication_factor
    return config.default_replication_factor


def overrides_of(name: str, config: BrokerConfig) -> dict[str, str]:
    """Return the overrides for an internal topic of the coordinators; none for any other topic."""
    if name == GROUP_OFFSETS:
        return {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(config.offsets_topic_segment_bytes),
        }
    if name == TRANSACTION_STATE:
        return {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": str(config.transaction_state_log_min_isr),
            "segment.bytes": str(config.transaction_state_log_segment_bytes),
            "unclean.leader.election.enable": "false",
        }
    return {}
