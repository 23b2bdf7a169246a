"""Administration: topics, configs, offsets, groups, transactions, log folders, leaders, replicas, brokers."""

from __future__ import annotations

from logd.client.admin.brokers import BrokerAdmin
from logd.client.admin.configs import ConfigAdmin
from logd.client.admin.elections import ElectionAdmin
from logd.client.admin.groups import GroupAdmin
from logd.client.admin.log_dirs import LogDirAdmin
from logd.client.admin.offsets import OffsetAdmin
from logd.client.admin.reassignments import ReassignmentAdmin
from logd.client.admin.topics import TopicAdmin
from logd.client.admin.transactions import TransactionAdmin


class Admin(
    TopicAdmin,
    ConfigAdmin,
    OffsetAdmin,
    GroupAdmin,
    TransactionAdmin,
    LogDirAdmin,
    ElectionAdmin,
    ReassignmentAdmin,
    BrokerAdmin,
):
    """Admin calls on a client. Every error is a KafkaError whose message names the topic, group, config or
    transactional id.

    `timeout_ms`: how long one call, with its retries, may take.
    """
