"""ListPartitionReassignments: the request and the response."""

from typing import ClassVar

from kafka_client.wire.message import Int16, Int32, Message, String


class ListPartitionReassignmentsTopics(Message):
    """Part of ListPartitionReassignmentsRequest."""

    name: String = ""
    partition_indexes: list[Int32] = []


class ListPartitionReassignmentsRequest(Message):
    """ListPartitionReassignments request, version 0."""

    API_KEY: ClassVar[int] = 46
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    timeout_ms: Int32 = 60_000
    topics: list[ListPartitionReassignmentsTopics] | None = None


class OngoingPartitionReassignment(Message):
    """Part of ListPartitionReassignmentsResponse."""

    partition_index: Int32 = 0
    replicas: list[Int32] = []
    adding_replicas: list[Int32] = []
    removing_replicas: list[Int32] = []


class OngoingTopicReassignment(Message):
    """Part of ListPartitionReassignmentsResponse."""

    name: String = ""
    partitions: list[OngoingPartitionReassignment] = []


class ListPartitionReassignmentsResponse(Message):
    """ListPartitionReassignments response, version 0."""

    API_KEY: ClassVar[int] = 46
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    topics: list[OngoingTopicReassignment] = []
