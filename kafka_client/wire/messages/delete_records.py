"""DeleteRecords: the request and the response, over all their versions."""

from typing import ClassVar

from kafka_client.wire.message import Int16, Int32, Int64, Message, String


class DeleteRecordsPartition(Message):
    """Part of DeleteRecordsRequest."""

    partition_index: Int32 = 0
    offset: Int64 = 0


class DeleteRecordsTopic(Message):
    """Part of DeleteRecordsRequest."""

    name: String = ""
    partitions: list[DeleteRecordsPartition] = []


class DeleteRecordsRequest(Message):
    """DeleteRecords request, versions 0 to 2."""

    API_KEY: ClassVar[int] = 21
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE: ClassVar[int] = 2

    topics: list[DeleteRecordsTopic] = []
    timeout_ms: Int32 = 0


class DeleteRecordsPartitionResult(Message):
    """Part of DeleteRecordsResponse."""

    partition_index: Int32 = 0
    low_watermark: Int64 = 0
    error_code: Int16 = 0


class DeleteRecordsTopicResult(Message):
    """Part of DeleteRecordsResponse."""

    name: String = ""
    partitions: list[DeleteRecordsPartitionResult] = []


class DeleteRecordsResponse(Message):
    """DeleteRecords response, versions 0 to 2."""

    API_KEY: ClassVar[int] = 21
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE: ClassVar[int] = 2

    throttle_time_ms: Int32 = 0
    topics: list[DeleteRecordsTopicResult] = []
