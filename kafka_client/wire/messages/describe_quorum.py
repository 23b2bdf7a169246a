"""DescribeQuorum: the request and the response, over all their versions."""

from typing import Annotated, ClassVar

from kafka_client.wire.message import NO_UUID, Int16, Int32, Int64, Message, String, UInt16, Uuid, V


class PartitionData(Message):
    """Part of DescribeQuorumRequest."""

    partition_index: Int32 = 0


class TopicData(Message):
    """Part of DescribeQuorumRequest."""

    topic_name: String = ""
    partitions: list[PartitionData] = []


class DescribeQuorumRequest(Message):
    """DescribeQuorum request, versions 0 to 2."""

    API_KEY: ClassVar[int] = 55
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE: ClassVar[int] = 0

    topics: list[TopicData] = []


class ReplicaState(Message):
    """Part of DescribeQuorumResponse."""

    replica_id: Int32 = 0
    replica_directory_id: Annotated[Uuid, V(2)] = NO_UUID
    log_end_offset: Int64 = 0
    last_fetch_timestamp: Annotated[Int64, V(1)] = -1
    last_caught_up_timestamp: Annotated[Int64, V(1)] = -1


class DescribedPartition(Message):
    """Part of DescribeQuorumResponse."""

    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: Annotated[String | None, V(2)] = ""
    leader_id: Int32 = 0
    leader_epoch: Int32 = 0
    high_watermark: Int64 = 0
    current_voters: list[ReplicaState] = []
    observers: list[ReplicaState] = []


class DescribedTopic(Message):
    """Part of DescribeQuorumResponse."""

    topic_name: String = ""
    partitions: list[DescribedPartition] = []


class Listener(Message):
    """Part of DescribeQuorumResponse."""

    name: String = ""
    host: String = ""
    port: UInt16 = 0


class Node(Message):
    """Part of DescribeQuorumResponse."""

    node_id: Int32 = 0
    listeners: list[Listener] = []


class DescribeQuorumResponse(Message):
    """DescribeQuorum response, versions 0 to 2."""

    API_KEY: ClassVar[int] = 55
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE: ClassVar[int] = 0

    error_code: Int16 = 0
    error_message: Annotated[String | None, V(2)] = ""
    topics: list[DescribedTopic] = []
    nodes: Annotated[list[Node], V(2)] = []
