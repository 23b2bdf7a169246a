"""ListOffsets: the request and the response, over all their versions."""

from typing import Annotated, ClassVar

from kafka_client.wire.message import Int8, Int16, Int32, Int64, Message, String, V


class ListOffsetsPartition(Message):
    """Part of ListOffsetsRequest."""

    partition_index: Int32 = 0
    current_leader_epoch: Annotated[Int32, V(4)] = -1
    timestamp: Int64 = 0


class ListOffsetsTopic(Message):
    """Part of ListOffsetsRequest."""

    name: String = ""
    partitions: list[ListOffsetsPartition] = []


class ListOffsetsRequest(Message):
    """ListOffsets request, versions 1 to 11."""

    API_KEY: ClassVar[int] = 2
    VERSIONS: ClassVar[tuple[int, int]] = (1, 11)
    FLEXIBLE: ClassVar[int] = 6

    replica_id: Int32 = 0
    isolation_level: Annotated[Int8, V(2)] = 0
    topics: list[ListOffsetsTopic] = []
    timeout_ms: Annotated[Int32, V(10)] = 0


class ListOffsetsPartitionResponse(Message):
    """Part of ListOffsetsResponse."""

    partition_index: Int32 = 0
    error_code: Int16 = 0
    timestamp: Int64 = -1
    offset: Int64 = -1
    leader_epoch: Annotated[Int32, V(4)] = -1


class ListOffsetsTopicResponse(Message):
    """Part of ListOffsetsResponse."""

    name: String = ""
    partitions: list[ListOffsetsPartitionResponse] = []


class ListOffsetsResponse(Message):
    """ListOffsets response, versions 1 to 11."""

    API_KEY: ClassVar[int] = 2
    VERSIONS: ClassVar[tuple[int, int]] = (1, 11)
    FLEXIBLE: ClassVar[int] = 6

    throttle_time_ms: Annotated[Int32, V(2)] = 0
    topics: list[ListOffsetsTopicResponse] = []
