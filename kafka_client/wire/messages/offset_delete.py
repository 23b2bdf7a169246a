"""OffsetDelete: the request and the response, over all their versions."""

from typing import ClassVar

from kafka_client.wire.message import NEVER, Int16, Int32, Message, String


class OffsetDeleteRequestPartition(Message):
    """Part of OffsetDeleteRequest."""

    partition_index: Int32 = 0


class OffsetDeleteRequestTopic(Message):
    """Part of OffsetDeleteRequest."""

    name: String = ""
    partitions: list[OffsetDeleteRequestPartition] = []


class OffsetDeleteRequest(Message):
    """OffsetDelete request, versions 0 to 0."""

    API_KEY: ClassVar[int] = 47
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = NEVER

    group_id: String = ""
    topics: list[OffsetDeleteRequestTopic] = []


class OffsetDeleteResponsePartition(Message):
    """Part of OffsetDeleteResponse."""

    partition_index: Int32 = 0
    error_code: Int16 = 0


class OffsetDeleteResponseTopic(Message):
    """Part of OffsetDeleteResponse."""

    name: String = ""
    partitions: list[OffsetDeleteResponsePartition] = []


class OffsetDeleteResponse(Message):
    """OffsetDelete response, versions 0 to 0."""

    API_KEY: ClassVar[int] = 47
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = NEVER

    error_code: Int16 = 0
    throttle_time_ms: Int32 = 0
    topics: list[OffsetDeleteResponseTopic] = []
