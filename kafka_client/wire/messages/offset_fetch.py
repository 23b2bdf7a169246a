"""OffsetFetch: the request and the response, over all their versions."""

from typing import Annotated, ClassVar

from kafka_client.wire.message import NO_UUID, Boolean, Int16, Int32, Int64, Message, String, Uuid, V


class OffsetFetchRequestTopics(Message):
    """Part of OffsetFetchRequest."""

    topic_id: Annotated[Uuid, V(10)] = NO_UUID
    name: Annotated[String, V(8, 9)] = ""
    partition_indexes: list[Int32] = []


class OffsetFetchRequestGroup(Message):
    """Part of OffsetFetchRequest."""

    group_id: String = ""
    member_id: Annotated[String | None, V(9)] = None
    member_epoch: Annotated[Int32, V(9)] = -1
    topics: list[OffsetFetchRequestTopics] | None = []


class OffsetFetchRequestTopic(Message):
    """Part of OffsetFetchRequest."""

    name: String = ""
    partition_indexes: list[Int32] = []


class OffsetFetchRequest(Message):
    """OffsetFetch request, versions 1 to 10."""

    API_KEY: ClassVar[int] = 9
    VERSIONS: ClassVar[tuple[int, int]] = (1, 10)
    FLEXIBLE: ClassVar[int] = 6

    groups: Annotated[list[OffsetFetchRequestGroup], V(8)] = []
    group_id: Annotated[String, V(1, 7)] = ""
    topics: Annotated[list[OffsetFetchRequestTopic] | None, V(1, 7, nullable=2)] = []
    require_stable: Annotated[Boolean, V(7)] = False


class OffsetFetchResponsePartitions(Message):
    """Part of OffsetFetchResponse."""

    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Int32 = -1
    metadata: String | None = None
    error_code: Int16 = 0


class OffsetFetchResponseTopics(Message):
    """Part of OffsetFetchResponse."""

    topic_id: Annotated[Uuid, V(10)] = NO_UUID
    name: Annotated[String, V(8, 9)] = ""
    partitions: list[OffsetFetchResponsePartitions] = []


class OffsetFetchResponseGroup(Message):
    """Part of OffsetFetchResponse."""

    group_id: String = ""
    topics: list[OffsetFetchResponseTopics] = []
    error_code: Int16 = 0


class OffsetFetchResponsePartition(Message):
    """Part of OffsetFetchResponse."""

    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Annotated[Int32, V(5)] = -1
    metadata: String | None = None
    error_code: Int16 = 0


class OffsetFetchResponseTopic(Message):
    """Part of OffsetFetchResponse."""

    name: String = ""
    partitions: list[OffsetFetchResponsePartition] = []


class OffsetFetchResponse(Message):
    """OffsetFetch response, versions 1 to 10."""

    API_KEY: ClassVar[int] = 9
    VERSIONS: ClassVar[tuple[int, int]] = (1, 10)
    FLEXIBLE: ClassVar[int] = 6

    throttle_time_ms: Annotated[Int32, V(3)] = 0
    groups: Annotated[list[OffsetFetchResponseGroup], V(8)] = []
    topics: Annotated[list[OffsetFetchResponseTopic], V(1, 7)] = []
    error_code: Annotated[Int16, V(2, 7)] = 0
