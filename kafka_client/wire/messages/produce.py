"""Produce: the request and the response, over all their versions.

A broker uses `kafka_client.wire.produce`.
"""

from typing import Annotated, ClassVar

import msgspec

from kafka_client.wire.message import NO_UUID, Int16, Int32, Int64, Message, Records, String, Uuid, V


class PartitionProduceData(Message):
    """Part of ProduceRequest."""

    index: Int32 = 0
    records: Records | None = None


class TopicProduceData(Message):
    """Part of ProduceRequest."""

    name: Annotated[String, V(0, 12)] = ""
    topic_id: Annotated[Uuid, V(13)] = NO_UUID
    partition_data: list[PartitionProduceData] = []


class ProduceRequest(Message):
    """Produce request, versions 3 to 13."""

    API_KEY: ClassVar[int] = 0
    VERSIONS: ClassVar[tuple[int, int]] = (3, 13)
    FLEXIBLE: ClassVar[int] = 9

    transactional_id: String | None = None
    acks: Int16 = 0
    timeout_ms: Int32 = 0
    topic_data: list[TopicProduceData] = []


class BatchIndexAndErrorMessage(Message):
    """Part of ProduceResponse."""

    batch_index: Int32 = 0
    batch_index_error_message: String | None = None


class ProduceLeaderIdAndEpoch(Message):
    """Part of ProduceResponse."""

    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


class PartitionProduceResponse(Message):
    """Part of ProduceResponse."""

    index: Int32 = 0
    error_code: Int16 = 0
    base_offset: Int64 = 0
    log_append_time_ms: Int64 = -1
    log_start_offset: Annotated[Int64, V(5)] = -1
    record_errors: Annotated[list[BatchIndexAndErrorMessage], V(8)] = []
    error_message: Annotated[String | None, V(8)] = None
    current_leader: Annotated[ProduceLeaderIdAndEpoch, V(10, tag=0)] = msgspec.field(
        default_factory=ProduceLeaderIdAndEpoch
    )


class TopicProduceResponse(Message):
    """Part of ProduceResponse."""

    name: Annotated[String, V(0, 12)] = ""
    topic_id: Annotated[Uuid, V(13)] = NO_UUID
    partition_responses: list[PartitionProduceResponse] = []


class ProduceNodeEndpoint(Message):
    """Part of ProduceResponse."""

    node_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    rack: String | None = None


class ProduceResponse(Message):
    """Produce response, versions 3 to 13."""

    API_KEY: ClassVar[int] = 0
    VERSIONS: ClassVar[tuple[int, int]] = (3, 13)
    FLEXIBLE: ClassVar[int] = 9

    responses: list[TopicProduceResponse] = []
    throttle_time_ms: Int32 = 0
    node_endpoints: Annotated[list[ProduceNodeEndpoint], V(10, tag=0)] = []
