"""Fetch: the request and the response, over all their versions.

A broker uses `kafka_client.wire.fetch`. A client sends this request and reads the response with
`kafka_client.wire.fetched`.
"""

from typing import Annotated, ClassVar

import msgspec

from kafka_client.wire.message import (
    NO_UUID,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    Records,
    String,
    Uuid,
    V,
)


class ReplicaState(Message):
    """Part of FetchRequest."""

    replica_id: Int32 = -1
    replica_epoch: Int64 = -1


class FetchPartition(Message):
    """Part of FetchRequest."""

    partition: Int32 = 0
    current_leader_epoch: Annotated[Int32, V(9)] = -1
    fetch_offset: Int64 = 0
    last_fetched_epoch: Annotated[Int32, V(12)] = -1
    log_start_offset: Annotated[Int64, V(5)] = -1
    partition_max_bytes: Int32 = 0
    replica_directory_id: Annotated[Uuid, V(17, tag=0)] = NO_UUID
    high_watermark: Annotated[Int64, V(18, tag=1)] = 9223372036854775807


class FetchTopic(Message):
    """Part of FetchRequest."""

    topic: Annotated[String, V(0, 12)] = ""
    topic_id: Annotated[Uuid, V(13)] = NO_UUID
    partitions: list[FetchPartition] = []


class ForgottenTopic(Message):
    """Part of FetchRequest."""

    topic: Annotated[String, V(0, 12)] = ""
    topic_id: Annotated[Uuid, V(13)] = NO_UUID
    partitions: list[Int32] = []


class FetchRequest(Message):
    """Fetch request, versions 4 to 18."""

    API_KEY: ClassVar[int] = 1
    VERSIONS: ClassVar[tuple[int, int]] = (4, 18)
    FLEXIBLE: ClassVar[int] = 12

    cluster_id: Annotated[String | None, V(12, tag=0)] = None
    replica_id: Annotated[Int32, V(0, 14)] = -1
    replica_state: Annotated[ReplicaState, V(15, tag=1)] = msgspec.field(default_factory=ReplicaState)
    max_wait_ms: Int32 = 0
    min_bytes: Int32 = 0
    max_bytes: Int32 = 0x7FFFFFFF
    isolation_level: Int8 = 0
    session_id: Annotated[Int32, V(7)] = 0
    session_epoch: Annotated[Int32, V(7)] = -1
    topics: list[FetchTopic] = []
    forgotten_topics_data: Annotated[list[ForgottenTopic], V(7)] = []
    rack_id: Annotated[String, V(11)] = ""


class EpochEndOffset(Message):
    """Part of FetchResponse."""

    epoch: Int32 = -1
    end_offset: Int64 = -1


class FetchLeaderIdAndEpoch(Message):
    """Part of FetchResponse."""

    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


class SnapshotId(Message):
    """Part of FetchResponse."""

    end_offset: Int64 = -1
    epoch: Int32 = -1


class AbortedTransaction(Message):
    """Part of FetchResponse."""

    producer_id: Int64 = 0
    first_offset: Int64 = 0


class PartitionData(Message):
    """Part of FetchResponse."""

    partition_index: Int32 = 0
    error_code: Int16 = 0
    high_watermark: Int64 = 0
    last_stable_offset: Int64 = -1
    log_start_offset: Annotated[Int64, V(5)] = -1
    diverging_epoch: Annotated[EpochEndOffset, V(12, tag=0)] = msgspec.field(default_factory=EpochEndOffset)
    current_leader: Annotated[FetchLeaderIdAndEpoch, V(12, tag=1)] = msgspec.field(
        default_factory=FetchLeaderIdAndEpoch
    )
    snapshot_id: Annotated[SnapshotId, V(12, tag=2)] = msgspec.field(default_factory=SnapshotId)
    aborted_transactions: list[AbortedTransaction] | None = []
    preferred_read_replica: Annotated[Int32, V(11)] = -1
    records: Records | None = None


class FetchableTopicResponse(Message):
    """Part of FetchResponse."""

    topic: Annotated[String, V(0, 12)] = ""
    topic_id: Annotated[Uuid, V(13)] = NO_UUID
    partitions: list[PartitionData] = []


class FetchNodeEndpoint(Message):
    """Part of FetchResponse."""

    node_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    rack: String | None = None


class FetchResponse(Message):
    """Fetch response, versions 4 to 18."""

    API_KEY: ClassVar[int] = 1
    VERSIONS: ClassVar[tuple[int, int]] = (4, 18)
    FLEXIBLE: ClassVar[int] = 12

    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, V(7)] = 0
    session_id: Annotated[Int32, V(7)] = 0
    responses: list[FetchableTopicResponse] = []
    node_endpoints: Annotated[list[FetchNodeEndpoint], V(16, tag=0)] = []
