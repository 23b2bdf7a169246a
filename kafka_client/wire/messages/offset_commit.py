"""OffsetCommit: the request and the response, over all their versions."""

from typing import Annotated, ClassVar

from kafka_client.wire.message import NO_UUID, Int16, Int32, Int64, Message, String, Uuid, V


class OffsetCommitRequestPartition(Message):
    """Part of OffsetCommitRequest."""

    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Annotated[Int32, V(6)] = -1
    committed_metadata: String | None = None


class OffsetCommitRequestTopic(Message):
    """Part of OffsetCommitRequest."""

    topic_id: Annotated[Uuid, V(10)] = NO_UUID
    name: Annotated[String, V(2, 9)] = ""
    partitions: list[OffsetCommitRequestPartition] = []


class OffsetCommitRequest(Message):
    """OffsetCommit request, versions 2 to 10."""

    API_KEY: ClassVar[int] = 8
    VERSIONS: ClassVar[tuple[int, int]] = (2, 10)
    FLEXIBLE: ClassVar[int] = 8

    group_id: String = ""
    generation_id_or_member_epoch: Int32 = -1
    member_id: String = ""
    group_instance_id: Annotated[String | None, V(7)] = None
    retention_time_ms: Annotated[Int64, V(2, 4)] = -1
    topics: list[OffsetCommitRequestTopic] = []


class OffsetCommitResponsePartition(Message):
    """Part of OffsetCommitResponse."""

    partition_index: Int32 = 0
    error_code: Int16 = 0


class OffsetCommitResponseTopic(Message):
    """Part of OffsetCommitResponse."""

    topic_id: Annotated[Uuid, V(10)] = NO_UUID
    name: Annotated[String, V(2, 9)] = ""
    partitions: list[OffsetCommitResponsePartition] = []


class OffsetCommitResponse(Message):
    """OffsetCommit response, versions 2 to 10."""

    API_KEY: ClassVar[int] = 8
    VERSIONS: ClassVar[tuple[int, int]] = (2, 10)
    FLEXIBLE: ClassVar[int] = 8

    throttle_time_ms: Annotated[Int32, V(3)] = 0
    topics: list[OffsetCommitResponseTopic] = []
