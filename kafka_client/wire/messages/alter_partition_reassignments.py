"""AlterPartitionReassignments: the request and the response, over all their versions."""

from typing import Annotated, ClassVar

from kafka_client.wire.message import Boolean, Int16, Int32, Message, String, V


class ReassignablePartition(Message):
    """Part of AlterPartitionReassignmentsRequest."""

    partition_index: Int32 = 0
    replicas: list[Int32] | None = None


class ReassignableTopic(Message):
    """Part of AlterPartitionReassignmentsRequest."""

    name: String = ""
    partitions: list[ReassignablePartition] = []


class AlterPartitionReassignmentsRequest(Message):
    """AlterPartitionReassignments request, versions 0 to 1."""

    API_KEY: ClassVar[int] = 45
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE: ClassVar[int] = 0

    timeout_ms: Int32 = 60_000
    allow_replication_factor_change: Annotated[Boolean, V(1)] = True
    topics: list[ReassignableTopic] = []


class ReassignablePartitionResponse(Message):
    """Part of AlterPartitionReassignmentsResponse."""

    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None


class ReassignableTopicResponse(Message):
    """Part of AlterPartitionReassignmentsResponse."""

    name: String = ""
    partitions: list[ReassignablePartitionResponse] = []


class AlterPartitionReassignmentsResponse(Message):
    """AlterPartitionReassignments response, versions 0 to 1."""

    API_KEY: ClassVar[int] = 45
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: Int32 = 0
    allow_replication_factor_change: Annotated[Boolean, V(1)] = True
    error_code: Int16 = 0
    error_message: String | None = None
    responses: list[ReassignableTopicResponse] = []
