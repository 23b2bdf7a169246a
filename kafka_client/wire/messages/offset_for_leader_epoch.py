"""OffsetForLeaderEpoch: the request and the response, over all their versions."""

from typing import Annotated, ClassVar

from kafka_client.wire.message import Int16, Int32, Int64, Message, String, V


class OffsetForLeaderPartition(Message):
    """Part of OffsetForLeaderEpochRequest."""

    partition: Int32 = 0
    current_leader_epoch: Int32 = -1
    leader_epoch: Int32 = 0


class OffsetForLeaderTopic(Message):
    """Part of OffsetForLeaderEpochRequest."""

    topic: String = ""
    partitions: list[OffsetForLeaderPartition] = []


class OffsetForLeaderEpochRequest(Message):
    """OffsetForLeaderEpoch request, versions 2 to 4."""

    API_KEY: ClassVar[int] = 23
    VERSIONS: ClassVar[tuple[int, int]] = (2, 4)
    FLEXIBLE: ClassVar[int] = 4

    replica_id: Annotated[Int32, V(3)] = -2
    topics: list[OffsetForLeaderTopic] = []


class EpochEndOffset(Message):
    """Part of OffsetForLeaderEpochResponse."""

    error_code: Int16 = 0
    partition: Int32 = 0
    leader_epoch: Int32 = -1
    end_offset: Int64 = -1


class OffsetForLeaderTopicResult(Message):
    """Part of OffsetForLeaderEpochResponse."""

    topic: String = ""
    partitions: list[EpochEndOffset] = []


class OffsetForLeaderEpochResponse(Message):
    """OffsetForLeaderEpoch response, versions 2 to 4."""

    API_KEY: ClassVar[int] = 23
    VERSIONS: ClassVar[tuple[int, int]] = (2, 4)
    FLEXIBLE: ClassVar[int] = 4

    throttle_time_ms: Int32 = 0
    topics: list[OffsetForLeaderTopicResult] = []
