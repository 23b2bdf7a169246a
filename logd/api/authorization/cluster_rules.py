"""Rules of the APIs about the cluster, its settings and its ACLs."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from kafka_client.acl import Operation
from kafka_client.errors import ErrorCode
from kafka_client.wire.message import Message
from kafka_client.wire.messages import alter_configs as replacing
from kafka_client.wire.messages import incremental_alter_configs as incremental
from kafka_client.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from kafka_client.wire.messages.describe_acls import DescribeAclsResponse
from kafka_client.wire.messages.describe_configs import DescribeConfigsResponse, DescribeConfigsResult
from kafka_client.wire.messages.describe_log_dirs import DescribeLogDirsResponse
from kafka_client.wire.messages.describe_quorum import DescribeQuorumResponse
from kafka_client.wire.messages.list_config_resources import ListConfigResourcesResponse
from kafka_client.wire.private.broker_shutdown import BrokerShutdownResponse
from logd.api.authorization.access import Access, Need, on_cluster, on_group, on_topic
from logd.api.authorization.rule import Each, Shown, Whole

TOPIC, GROUP = 2, 32
"""Types of resources with settings. For all others, brokers among them, the cluster is asked for."""


def _on_cluster(operation: Operation, refuse: Callable[[Any, ErrorCode], Message]) -> Whole:
    return Whole(lambda request: on_cluster(operation), refuse)


def _by_handler(module: str) -> Callable[[Any, ErrorCode], Message]:
    """Return the refusal that the API's handler has for an unknown controller."""

    def refuse(request: Any, code: ErrorCode) -> Message:
        refusal: Message = importlib.import_module(f"logd.api.handlers.{module}").refused(request, code)
        return refusal

    return refuse


def _log_dirs_refused(request: Any, code: ErrorCode) -> AlterReplicaLogDirsResponse:
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic_name=topic.name,
                partitions=[
                    AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code)
                    for index in topic.partitions
                ],
            )
            for directory in request.dirs
            for topic in directory.topics
        ]
    )


ALTER_REPLICA_LOG_DIRS = _on_cluster(Operation.ALTER, _log_dirs_refused)
DESCRIBE_LOG_DIRS = _on_cluster(
    Operation.DESCRIBE, lambda request, code: DescribeLogDirsResponse(error_code=code)
)
ELECT_LEADERS = _on_cluster(Operation.ALTER, _by_handler("elect_leaders"))
ALTER_PARTITION_REASSIGNMENTS = _on_cluster(Operation.ALTER, _by_handler("alter_partition_reassignments"))
LIST_PARTITION_REASSIGNMENTS = _on_cluster(Operation.DESCRIBE, _by_handler("list_partition_reassignments"))
UPDATE_FEATURES = _on_cluster(Operation.ALTER, _by_handler("update_features"))
DESCRIBE_QUORUM = _on_cluster(
    Operation.DESCRIBE, lambda request, code: DescribeQuorumResponse(error_code=code)
)
LIST_CONFIG_RESOURCES = _on_cluster(
    Operation.DESCRIBE_CONFIGS, lambda request, code: ListConfigResourcesResponse(error_code=code)
)
DESCRIBE_CLIENT_QUOTAS = _on_cluster(Operation.DESCRIBE_CONFIGS, _by_handler("describe_client_quotas"))
ALTER_CLIENT_QUOTAS = _on_cluster(Operation.ALTER_CONFIGS, _by_handler("alter_client_quotas"))
DESCRIBE_USER_SCRAM_CREDENTIALS = _on_cluster(
    Operation.DESCRIBE, _by_handler("describe_user_scram_credentials")
)
ALTER_USER_SCRAM_CREDENTIALS = _on_cluster(Operation.ALTER, _by_handler("alter_user_scram_credentials"))
BROKER_SHUTDOWN = _on_cluster(
    Operation.ALTER,
    lambda request, code: BrokerShutdownResponse(
        error_code=code, error_message="Cluster authorization failed."
    ),
)
DESCRIBE_ACLS = _on_cluster(Operation.DESCRIBE, lambda request, code: DescribeAclsResponse(error_code=code))
CREATE_ACLS = _on_cluster(Operation.ALTER, _by_handler("create_acls"))
DELETE_ACLS = _on_cluster(Operation.ALTER, _by_handler("delete_acls"))


def _of_config(operation: Operation) -> Callable[[Any, Access], Need]:
    def needs(resource: Any, access: Access) -> Need:
        if resource.resource_type == TOPIC:
            return on_topic(operation, resource.resource_name)
        if resource.resource_type == GROUP:
            return on_group(operation, resource.resource_name)
        return on_cluster(operation)

    return needs


DESCRIBE_CONFIGS = Each(
    "resources",
    _of_config(Operation.DESCRIBE_CONFIGS),
    lambda resource, code: DescribeConfigsResult(
        resource_type=resource.resource_type, resource_name=resource.resource_name, error_code=code
    ),
    DescribeConfigsResponse,
    "results",
)
ALTER_CONFIGS = Each(
    "resources",
    _of_config(Operation.ALTER_CONFIGS),
    lambda resource, code: replacing.AlterConfigsResourceResponse(
        resource_type=resource.resource_type, resource_name=resource.resource_name, error_code=code
    ),
    replacing.AlterConfigsResponse,
    "responses",
)
INCREMENTAL_ALTER_CONFIGS = Each(
    "resources",
    _of_config(Operation.ALTER_CONFIGS),
    lambda resource, code: incremental.AlterConfigsResourceResponse(
        resource_type=resource.resource_type, resource_name=resource.resource_name, error_code=code
    ),
    incremental.IncrementalAlterConfigsResponse,
    "responses",
)


def _describe_operations(response: Any, request: Any, access: Access) -> None:
    if request.include_cluster_authorized_operations and not response.error_code:
        response.cluster_authorized_operations = access.cluster_operations()


DESCRIBE_CLUSTER = Shown(_describe_operations)
