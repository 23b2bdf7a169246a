"""Rules of the APIs about groups and their offsets."""

from __future__ import annotations

from typing import Any

from kafka_client.acl import Operation, ResourceType
from kafka_client.errors import ErrorCode
from kafka_client.wire.messages.delete_groups import DeletableGroupResult, DeleteGroupsResponse
from kafka_client.wire.messages.describe_groups import DescribedGroup, DescribeGroupsResponse
from kafka_client.wire.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from kafka_client.wire.messages.heartbeat import HeartbeatResponse
from kafka_client.wire.messages.join_group import JoinGroupResponse
from kafka_client.wire.messages.leave_group import LeaveGroupResponse
from kafka_client.wire.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kafka_client.wire.messages.offset_delete import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from kafka_client.wire.messages.sync_group import SyncGroupResponse
from logd.api.authorization.access import Access, Need, on_cluster, on_group, on_topic, on_transactional_id
from logd.api.authorization.rule import Each, Shown, Verdict, Whole, in_turn
from logd.api.named_topics import topic_called
from logd.api.operations import GROUP_OPERATIONS
from logd.groups.offsets import commit_refused

BATCHED_FROM = 4
"""The first version of FindCoordinator with several keys."""
TRANSACTION_KEY = 1
"""The type of a transactional id in FindCoordinator."""


def _to_read(request: Any) -> Need:
    return on_group(Operation.READ, request.group_id)


JOIN_GROUP = Whole(
    _to_read,
    lambda request, code: JoinGroupResponse(
        error_code=code, member_id=request.member_id, protocol_name="", generation_id=-1
    ),
)
SYNC_GROUP = Whole(_to_read, lambda request, code: SyncGroupResponse(error_code=code))
HEARTBEAT = Whole(_to_read, lambda request, code: HeartbeatResponse(error_code=code))
LEAVE_GROUP = Whole(_to_read, lambda request, code: LeaveGroupResponse(error_code=code))


def _describe_operations(response: Any, request: Any, access: Access) -> None:
    if request.include_authorized_operations:
        for group in response.groups:
            if not group.error_code:
                group.authorized_operations = access.operations(
                    ResourceType.GROUP, group.group_id, GROUP_OPERATIONS
                )


DESCRIBE_GROUPS = in_turn(
    Each(
        "groups",
        lambda group_id, access: on_group(Operation.DESCRIBE, group_id),
        lambda group_id, code: DescribedGroup(group_id=group_id, error_code=code),
        DescribeGroupsResponse,
        "groups",
    ),
    Shown(_describe_operations),
)


def _hide_groups(response: Any, request: Any, access: Access) -> None:
    if not access.shows(on_cluster(Operation.DESCRIBE)):
        response.groups = [
            group for group in response.groups if access.shows(on_group(Operation.DESCRIBE, group.group_id))
        ]


LIST_GROUPS = Shown(_hide_groups)
DELETE_GROUPS = Each(
    "groups_names",
    lambda group_id, access: on_group(Operation.DELETE, group_id),
    lambda group_id, code: DeletableGroupResult(group_id=group_id, error_code=code),
    DeleteGroupsResponse,
    "results",
)


def _committed_topic(topic: Any, access: Access) -> Need | None:
    topic_of_id = topic_called(topic.name, topic.topic_id, access.context)
    name = topic_of_id.name if topic_of_id is not None else topic.name
    return on_topic(Operation.READ, name) if name else None  # an unknown id is not known to the handler


OFFSET_COMMIT = in_turn(
    Whole(_to_read, commit_refused),
    Each(
        "topics",
        _committed_topic,
        lambda topic, code: OffsetCommitResponseTopic(
            topic_id=topic.topic_id,
            name=topic.name,
            partitions=[
                OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
                for each in topic.partitions
            ],
        ),
        OffsetCommitResponse,
        "topics",
    ),
)
OFFSET_DELETE = in_turn(
    Whole(
        lambda request: on_group(Operation.DELETE, request.group_id),
        lambda request, code: OffsetDeleteResponse(error_code=code),
    ),
    Each(
        "topics",
        lambda topic, access: on_topic(Operation.READ, topic.name),
        lambda topic, code: OffsetDeleteResponseTopic(
            name=topic.name,
            partitions=[
                OffsetDeleteResponsePartition(partition_index=each.partition_index, error_code=code)
                for each in topic.partitions
            ],
        ),
        OffsetDeleteResponse,
        "topics",
    ),
)


def find_coordinator(request: Any, access: Access) -> Verdict:
    """Check each key: a group, or a transactional id."""
    of_key = on_transactional_id if request.key_type == TRANSACTION_KEY else on_group
    batched = Each(
        "coordinator_keys",
        lambda key, access: of_key(Operation.DESCRIBE, key),
        lambda key, code: Coordinator(key=key, error_code=code, node_id=-1, port=-1),
        FindCoordinatorResponse,
        "coordinators",
    )
    if access.context.version >= BATCHED_FROM:
        return batched(request, access)
    need = of_key(Operation.DESCRIBE, request.key)
    if access.allows(need):
        return Verdict(request)
    refusal = FindCoordinatorResponse(
        error_code=need.error, error_message=ErrorCode(need.error).name, node_id=-1, port=-1
    )
    return Verdict(None, refusal)
