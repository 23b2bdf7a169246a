"""The records of the newer group protocols in `__consumer_offsets`, for printing only.

Consumer groups (KIP-848) have types 3 to 8 and 16. Share groups (KIP-932) have types 10 to 15, streams groups
(KIP-1071) 17 to 23. The format is that of Apache Kafka 4.4, which includes those of older versions.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final

import msgspec

from kafka_client.wire.message import (
    NO_UUID,
    Bytes,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    String,
    UInt16,
    Uuid,
    V,
)


class _Value(Message):
    FLEXIBLE: ClassVar[int] = 0


class GroupKey(Message):
    """The key of a group."""

    group_id: String = ""


class MemberKey(Message):
    """The key of a group's member."""

    group_id: String = ""
    member_id: String = ""


class RegularExpressionKey(Message):
    """The key of a group's subscription."""

    group_id: String = ""
    regular_expression: String = ""


class TopicPartitions(Message):
    """Part of the assignments."""

    topic_id: Uuid = NO_UUID
    partitions: list[Int32] = []


class AssignedPartitions(Message):
    """Part of ConsumerGroupCurrentMemberAssignmentValue."""

    topic_id: Uuid = NO_UUID
    partitions: list[Int32] = []
    assignment_epochs: Annotated[list[Int32] | None, V(tag=0)] = []


class TargetAssignmentMetadataValue(_Value):
    """Types 6, 12 and 20: the newest assignment."""

    assignment_epoch: Int32 = 0
    assignment_timestamp: Annotated[Int64, V(tag=0)] = 0


class TargetAssignmentMemberValue(_Value):
    """Types 7 and 13: what a member is to have."""

    topic_partitions: list[TopicPartitions] = []


class ConsumerGroupMetadataValue(_Value):
    """Type 3."""

    epoch: Int32 = 0
    metadata_hash: Annotated[Int64, V(tag=0)] = 0


class PartitionRacks(Message):
    """Part of TopicMetadata."""

    partition: Int32 = 0
    racks: list[String] = []


class TopicMetadata(Message):
    """Part of ConsumerGroupPartitionMetadataValue."""

    topic_id: Uuid = NO_UUID
    topic_name: String = ""
    num_partitions: Int32 = 0
    partition_metadata: list[PartitionRacks] = []


class ConsumerGroupPartitionMetadataValue(_Value):
    """Type 4."""

    topics: list[TopicMetadata] = []


class ClassicProtocol(Message):
    """Part of ClassicMemberMetadata."""

    name: String = ""
    metadata: Bytes = b""


class ClassicMemberMetadata(Message):
    """Part of ConsumerGroupMemberMetadataValue."""

    session_timeout_ms: Int32 = 0
    supported_protocols: list[ClassicProtocol] = []


class ConsumerGroupMemberMetadataValue(_Value):
    """Type 5."""

    instance_id: String | None = None
    rack_id: String | None = None
    client_id: String = ""
    client_host: String = ""
    subscribed_topic_names: list[String] = []
    subscribed_topic_regex: String | None = None
    rebalance_timeout_ms: Int32 = -1
    server_assignor: String | None = None
    classic_member_metadata: Annotated[ClassicMemberMetadata | None, V(tag=0)] = msgspec.field(
        default_factory=ClassicMemberMetadata
    )


class ConsumerGroupCurrentMemberAssignmentValue(_Value):
    """Type 8."""

    member_epoch: Int32 = 0
    previous_member_epoch: Int32 = 0
    state: Int8 = 0
    assigned_partitions: list[AssignedPartitions] = []
    partitions_pending_revocation: list[AssignedPartitions] = []


class ConsumerGroupRegularExpressionValue(_Value):
    """Type 16."""

    topics: list[String] = []
    version: Int64 = 0
    timestamp: Int64 = 0


class ShareGroupMetadataValue(_Value):
    """Type 11."""

    epoch: Int32 = 0
    metadata_hash: Int64 = 0


class ShareGroupMemberMetadataValue(_Value):
    """Type 10."""

    rack_id: String | None = None
    client_id: String = ""
    client_host: String = ""
    subscribed_topic_names: list[String] = []


class ShareGroupCurrentMemberAssignmentValue(_Value):
    """Type 14."""

    member_epoch: Int32 = 0
    previous_member_epoch: Int32 = 0
    state: Int8 = 0
    assigned_partitions: list[TopicPartitions] = []


class NamedPartitions(Message):
    """Part of ShareGroupStatePartitionMetadataValue."""

    topic_id: Uuid = NO_UUID
    topic_name: String = ""
    partitions: list[Int32] = []


class NamedTopic(Message):
    """Part of ShareGroupStatePartitionMetadataValue."""

    topic_id: Uuid = NO_UUID
    topic_name: String = ""


class ShareGroupStatePartitionMetadataValue(_Value):
    """Type 15."""

    initializing_topics: list[NamedPartitions] = []
    initialized_topics: list[NamedPartitions] = []
    deleting_topics: list[NamedTopic] = []


class KeyValue(Message):
    """Part of the streams groups' values."""

    key: String = ""
    value: String = ""


class StreamsGroupMetadataValue(_Value):
    """Type 17."""

    epoch: Int32 = 0
    metadata_hash: Int64 = 0
    validated_topology_epoch: Annotated[Int32, V(tag=0)] = -1
    last_assignment_configs: Annotated[list[KeyValue] | None, V(tag=1)] = []
    stored_description_topology_epoch: Annotated[Int32, V(tag=2)] = -1
    failed_description_topology_epoch: Annotated[Int32, V(tag=3)] = -1


class Endpoint(Message):
    """Part of StreamsGroupMemberMetadataValue."""

    host: String = ""
    port: UInt16 = 0


class StreamsGroupMemberMetadataValue(_Value):
    """Type 19."""

    instance_id: String | None = None
    rack_id: String | None = None
    client_id: String = ""
    client_host: String = ""
    rebalance_timeout_ms: Int32 = -1
    topology_epoch: Int32 = 0
    process_id: String = ""
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue] = []


class TaskIds(Message):
    """Part of StreamsGroupTargetAssignmentMemberValue."""

    subtopology_id: String = ""
    partitions: list[Int32] = []


class AssignedTasks(Message):
    """Part of StreamsGroupCurrentMemberAssignmentValue."""

    subtopology_id: String = ""
    partitions: list[Int32] = []
    assignment_epochs: Annotated[list[Int32] | None, V(tag=0)] = []


class StreamsGroupTargetAssignmentMemberValue(_Value):
    """Type 21."""

    active_tasks: list[TaskIds] = []
    standby_tasks: list[TaskIds] = []
    warmup_tasks: list[TaskIds] = []


class StreamsGroupCurrentMemberAssignmentValue(_Value):
    """Type 22."""

    member_epoch: Int32 = 0
    previous_member_epoch: Int32 = 0
    state: Int8 = 0
    active_tasks: list[AssignedTasks] = []
    standby_tasks: list[AssignedTasks] = []
    warmup_tasks: list[AssignedTasks] = []
    active_tasks_pending_revocation: list[AssignedTasks] = []
    standby_tasks_pending_revocation: list[AssignedTasks] = []
    warmup_tasks_pending_revocation: list[AssignedTasks] = []


class TopicInfo(Message):
    """Part of Subtopology."""

    name: String = ""
    partitions: Int32 = 0
    replication_factor: Int16 = 0
    topic_configs: list[KeyValue] = []


class CopartitionGroup(Message):
    """Part of Subtopology."""

    source_topics: list[Int16] = []
    source_topic_regex: list[Int16] = []
    repartition_source_topics: list[Int16] = []


class Subtopology(Message):
    """Part of StreamsGroupTopologyValue."""

    subtopology_id: String = ""
    source_topics: list[String] = []
    source_topic_regex: list[String] = []
    state_changelog_topics: list[TopicInfo] = []
    repartition_sink_topics: list[String] = []
    repartition_source_topics: list[TopicInfo] = []
    copartition_groups: list[CopartitionGroup] = []


class StreamsGroupTopologyValue(_Value):
    """Type 23."""

    epoch: Int32 = 0
    subtopologies: list[Subtopology] | None = None


NEWER_GROUPS: Final[dict[int, tuple[type[Message], type[Message]]]] = {
    3: (GroupKey, ConsumerGroupMetadataValue),
    4: (GroupKey, ConsumerGroupPartitionMetadataValue),
    5: (MemberKey, ConsumerGroupMemberMetadataValue),
    6: (GroupKey, TargetAssignmentMetadataValue),
    7: (MemberKey, TargetAssignmentMemberValue),
    8: (MemberKey, ConsumerGroupCurrentMemberAssignmentValue),
    10: (MemberKey, ShareGroupMemberMetadataValue),
    11: (GroupKey, ShareGroupMetadataValue),
    12: (GroupKey, TargetAssignmentMetadataValue),
    13: (MemberKey, TargetAssignmentMemberValue),
    14: (MemberKey, ShareGroupCurrentMemberAssignmentValue),
    15: (GroupKey, ShareGroupStatePartitionMetadataValue),
    16: (RegularExpressionKey, ConsumerGroupRegularExpressionValue),
    17: (GroupKey, StreamsGroupMetadataValue),
    19: (MemberKey, StreamsGroupMemberMetadataValue),
    20: (GroupKey, TargetAssignmentMetadataValue),
    21: (MemberKey, StreamsGroupTargetAssignmentMemberValue),
    22: (MemberKey, StreamsGroupCurrentMemberAssignmentValue),
    23: (GroupKey, StreamsGroupTopologyValue),
}
"""The messages in key and value, by the number that a key starts with."""
