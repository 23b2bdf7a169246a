"""DescribeProducers: the request and the response."""

from typing import ClassVar

from kafka_client.wire.message import Int16, Int32, Int64, Message, String


class TopicRequest(Message):
    """Part of DescribeProducersRequest."""

    name: String = ""
    partition_indexes: list[Int32] = []


class DescribeProducersRequest(Message):
    """DescribeProducers request, version 0."""

    API_KEY: ClassVar[int] = 61
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    topics: list[TopicRequest] = []


class ProducerState(Message):
    """Part of DescribeProducersResponse."""

    producer_id: Int64 = 0
    producer_epoch: Int32 = 0
    last_sequence: Int32 = -1
    last_timestamp: Int64 = -1
    coordinator_epoch: Int32 = 0
    current_txn_start_offset: Int64 = -1


class PartitionResponse(Message):
    """Part of DescribeProducersResponse."""

    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    active_producers: list[ProducerState] = []


class TopicResponse(Message):
    """Part of DescribeProducersResponse."""

    name: String = ""
    partitions: list[PartitionResponse] = []


class DescribeProducersResponse(Message):
    """DescribeProducers response, version 0."""

    API_KEY: ClassVar[int] = 61
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: Int32 = 0
    topics: list[TopicResponse] = []
