"""All admin calls: of topics, configs, groups, transactions, log directories, brokers, users, ACLs."""

from __future__ import annotations

from kafka_client.admin.acls import AclAdmin
from kafka_client.admin.brokers import BrokerAdmin
from kafka_client.admin.configs import ConfigAdmin
from kafka_client.admin.elections import ElectionAdmin
from kafka_client.admin.groups import GroupAdmin
from kafka_client.admin.log_dirs import LogDirAdmin
from kafka_client.admin.offsets import OffsetAdmin
from kafka_client.admin.reassignments import ReassignmentAdmin
from kafka_client.admin.topics import TopicAdmin
from kafka_client.admin.transactions import TransactionAdmin
from kafka_client.admin.users import UserAdmin


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
    UserAdmin,
    AclAdmin,
):
    """Admin calls on a client. Every error is a KafkaError whose message names the topic, group, config or
    transactional id.

    `timeout_ms`: how long one call, with its retries, may take.
    """
