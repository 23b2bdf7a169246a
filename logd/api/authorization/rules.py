"""The table of authorization: the rule of every API, by its key.

The comment beside a row names the operation and the resource. Produce, Fetch and Metadata have parsers and
caches of their own, and check in them (`records`, `metadata_rule`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from logd.api.authorization import cluster_rules, group_rules, topic_rules, transaction_rules
from logd.api.authorization.offset_fetch_rule import offset_fetch
from logd.api.authorization.rule import Rule, free

RULES: Final[Mapping[int, Rule]] = {
    2: topic_rules.list_offsets,  # DESCRIBE topic
    8: group_rules.OFFSET_COMMIT,  # READ group, READ topic
    9: offset_fetch,  # DESCRIBE group, DESCRIBE topic
    10: group_rules.find_coordinator,  # DESCRIBE group or transactional id
    11: group_rules.JOIN_GROUP,  # READ group
    12: group_rules.HEARTBEAT,  # READ group
    13: group_rules.LEAVE_GROUP,  # READ group
    14: group_rules.SYNC_GROUP,  # READ group
    15: group_rules.DESCRIBE_GROUPS,  # DESCRIBE group
    16: group_rules.LIST_GROUPS,  # DESCRIBE cluster, or else DESCRIBE group hides the others
    17: free,  # SaslHandshake
    18: free,  # ApiVersions
    19: topic_rules.CREATE_TOPICS,  # CREATE cluster or topic; DESCRIBE_CONFIGS topic for the settings
    20: topic_rules.DELETE_TOPICS,  # DELETE topic
    21: topic_rules.DELETE_RECORDS,  # DELETE topic
    22: transaction_rules.init_producer_id,  # WRITE transactional id; else WRITE some topic, IDEMPOTENT_WRITE
    23: topic_rules.offset_for_leader_epoch,  # DESCRIBE topic, or CLUSTER_ACTION cluster
    24: transaction_rules.add_partitions_to_txn,  # WRITE transactional id, WRITE topic
    25: transaction_rules.ADD_OFFSETS_TO_TXN,  # WRITE transactional id, READ group
    26: transaction_rules.END_TXN,  # WRITE transactional id
    27: transaction_rules.write_txn_markers,  # ALTER or CLUSTER_ACTION cluster
    28: transaction_rules.TXN_OFFSET_COMMIT,  # WRITE transactional id, READ group, READ topic
    29: cluster_rules.DESCRIBE_ACLS,  # DESCRIBE cluster
    30: cluster_rules.CREATE_ACLS,  # ALTER cluster
    31: cluster_rules.DELETE_ACLS,  # ALTER cluster
    32: cluster_rules.DESCRIBE_CONFIGS,  # DESCRIBE_CONFIGS topic or cluster
    33: cluster_rules.ALTER_CONFIGS,  # ALTER_CONFIGS topic or cluster
    34: cluster_rules.ALTER_REPLICA_LOG_DIRS,  # ALTER cluster
    35: cluster_rules.DESCRIBE_LOG_DIRS,  # DESCRIBE cluster
    36: free,  # SaslAuthenticate
    37: topic_rules.CREATE_PARTITIONS,  # ALTER topic
    42: group_rules.DELETE_GROUPS,  # DELETE group
    43: cluster_rules.ELECT_LEADERS,  # ALTER cluster
    44: cluster_rules.INCREMENTAL_ALTER_CONFIGS,  # ALTER_CONFIGS topic or cluster
    45: cluster_rules.ALTER_PARTITION_REASSIGNMENTS,  # ALTER cluster
    46: cluster_rules.LIST_PARTITION_REASSIGNMENTS,  # DESCRIBE cluster
    47: group_rules.OFFSET_DELETE,  # DELETE group, READ topic
    48: cluster_rules.DESCRIBE_CLIENT_QUOTAS,  # DESCRIBE_CONFIGS cluster
    49: cluster_rules.ALTER_CLIENT_QUOTAS,  # ALTER_CONFIGS cluster
    50: cluster_rules.DESCRIBE_USER_SCRAM_CREDENTIALS,  # DESCRIBE cluster
    51: cluster_rules.ALTER_USER_SCRAM_CREDENTIALS,  # ALTER cluster
    55: cluster_rules.DESCRIBE_QUORUM,  # DESCRIBE cluster
    57: cluster_rules.UPDATE_FEATURES,  # ALTER cluster
    60: cluster_rules.DESCRIBE_CLUSTER,  # DESCRIBE cluster for the operations
    61: topic_rules.DESCRIBE_PRODUCERS,  # READ topic
    65: transaction_rules.DESCRIBE_TRANSACTIONS,  # DESCRIBE transactional id; DESCRIBE topic hides topics
    66: transaction_rules.LIST_TRANSACTIONS,  # DESCRIBE transactional id hides the others
    74: cluster_rules.LIST_CONFIG_RESOURCES,  # DESCRIBE_CONFIGS cluster
    75: topic_rules.DESCRIBE_TOPIC_PARTITIONS,  # DESCRIBE topic
    10_002: cluster_rules.BROKER_SHUTDOWN,  # ALTER cluster
    # Only brokers of the cluster may send these (`logd.api.broker_requests`).
    56: free,  # AlterPartition
    58: free,  # Envelope: the request in it is checked for its sender
    67: free,  # AllocateProducerIds
    10_000: free,  # ClusterUpdate
    10_001: free,  # BrokerReport
}
