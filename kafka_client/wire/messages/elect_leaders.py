"""ElectLeaders: the request and the response."""

from typing import Annotated, ClassVar

from kafka_client.wire.message import Int8, Int16, Int32, Message, String, V


class TopicPartitions(Message):
    """Part of ElectLeadersRequest."""

    topic: String = ""
    partitions: list[Int32] = []


class ElectLeadersRequest(Message):
    """ElectLeaders request, versions 0 to 2."""

    API_KEY: ClassVar[int] = 43
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE: ClassVar[int] = 2

    election_type: Annotated[Int8, V(1)] = 0
    topic_partitions: list[TopicPartitions] | None = []
    timeout_ms: Int32 = 60_000


class PartitionResult(Message):
    """Part of ElectLeadersResponse."""

    partition_id: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None


class ReplicaElectionResult(Message):
    """Part of ElectLeadersResponse."""

    topic: String = ""
    partition_result: list[PartitionResult] = []


class ElectLeadersResponse(Message):
    """ElectLeaders response, versions 0 to 2."""

    API_KEY: ClassVar[int] = 43
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE: ClassVar[int] = 2

    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, V(1)] = 0
    replica_election_results: list[ReplicaElectionResult] = []
