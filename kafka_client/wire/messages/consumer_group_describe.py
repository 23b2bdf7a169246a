"""ConsumerGroupDescribe: the request and the response, over all their versions (KIP-848)."""

from typing import Annotated, ClassVar

import msgspec

from kafka_client.wire.message import NO_UUID, Boolean, Int8, Int16, Int32, Message, String, Uuid, V


class ConsumerGroupDescribeRequest(Message):
    """ConsumerGroupDescribe request, versions 0 to 1."""

    API_KEY: ClassVar[int] = 69
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE: ClassVar[int] = 0

    group_ids: list[String] = []
    include_authorized_operations: Boolean = False


class TopicPartitions(Message):
    """Part of ConsumerGroupDescribeResponse."""

    topic_id: Uuid = NO_UUID
    topic_name: String = ""
    partitions: list[Int32] = []


class Assignment(Message):
    """Part of ConsumerGroupDescribeResponse."""

    topic_partitions: list[TopicPartitions] = []


class Member(Message):
    """Part of ConsumerGroupDescribeResponse."""

    member_id: String = ""
    instance_id: String | None = None
    rack_id: String | None = None
    member_epoch: Int32 = 0
    client_id: String = ""
    client_host: String = ""
    subscribed_topic_names: list[String] = []
    subscribed_topic_regex: String | None = None
    assignment: Assignment = msgspec.field(default_factory=Assignment)
    target_assignment: Assignment = msgspec.field(default_factory=Assignment)
    member_type: Annotated[Int8, V(1)] = -1


class DescribedGroup(Message):
    """Part of ConsumerGroupDescribeResponse."""

    error_code: Int16 = 0
    error_message: String | None = None
    group_id: String = ""
    group_state: String = ""
    group_epoch: Int32 = 0
    assignment_epoch: Int32 = 0
    assignor_name: String = ""
    members: list[Member] = []
    authorized_operations: Int32 = -2147483648


class ConsumerGroupDescribeResponse(Message):
    """ConsumerGroupDescribe response, versions 0 to 1."""

    API_KEY: ClassVar[int] = 69
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: Int32 = 0
    groups: list[DescribedGroup] = []
