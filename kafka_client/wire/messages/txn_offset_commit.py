"""TxnOffsetCommit: the request and the response, over all their versions."""

from typing import Annotated, ClassVar

from kafka_client.wire.message import Int16, Int32, Int64, Message, String, V


class TxnOffsetCommitRequestPartition(Message):
    """Part of TxnOffsetCommitRequest."""

    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Annotated[Int32, V(2)] = -1
    committed_metadata: String | None = None


class TxnOffsetCommitRequestTopic(Message):
    """Part of TxnOffsetCommitRequest."""

    name: String = ""
    partitions: list[TxnOffsetCommitRequestPartition] = []


class TxnOffsetCommitRequest(Message):
    """TxnOffsetCommit request, versions 0 to 5."""

    API_KEY: ClassVar[int] = 28
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE: ClassVar[int] = 3

    transactional_id: String = ""
    group_id: String = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    generation_id: Annotated[Int32, V(3)] = -1
    member_id: Annotated[String, V(3)] = ""
    group_instance_id: Annotated[String | None, V(3)] = None
    topics: list[TxnOffsetCommitRequestTopic] = []


class TxnOffsetCommitResponsePartition(Message):
    """Part of TxnOffsetCommitResponse."""

    partition_index: Int32 = 0
    error_code: Int16 = 0


class TxnOffsetCommitResponseTopic(Message):
    """Part of TxnOffsetCommitResponse."""

    name: String = ""
    partitions: list[TxnOffsetCommitResponsePartition] = []


class TxnOffsetCommitResponse(Message):
    """TxnOffsetCommit response, versions 0 to 5."""

    API_KEY: ClassVar[int] = 28
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE: ClassVar[int] = 3

    throttle_time_ms: Int32 = 0
    topics: list[TxnOffsetCommitResponseTopic] = []
