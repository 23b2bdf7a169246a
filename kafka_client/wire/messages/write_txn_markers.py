"""WriteTxnMarkers: the request and the response, over all their versions.

Tags from `OUR_TAGS` on are ours, not Kafka's. logd's coordinators send them, and others leave them out.
"""

from typing import Annotated, ClassVar

from kafka_client.wire.message import OUR_TAGS, Boolean, Int8, Int16, Int32, Int64, Message, String, Uuid, V


class WritableTxnMarkerTopic(Message):
    """Part of WriteTxnMarkersRequest."""

    name: String = ""
    partition_indexes: list[Int32] = []
    leader_epochs: Annotated[list[Int32], V(1, tag=OUR_TAGS)] = []
    """The leader epochs of `partition_indexes`, in that order, as the coordinator's broker knows them."""
    topic_id: Annotated[Uuid, V(1, tag=OUR_TAGS + 1)] = bytes(16)


class WritableTxnMarker(Message):
    """Part of WriteTxnMarkersRequest."""

    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    transaction_result: Boolean = False
    topics: list[WritableTxnMarkerTopic] = []
    coordinator_epoch: Int32 = 0
    transaction_version: Annotated[Int8, V(2)] = 0
    transaction_number: Annotated[Int64, V(1, tag=OUR_TAGS)] = -1
    """Grows from one transaction of the producer id to the next, within a coordinator epoch."""


class WriteTxnMarkersRequest(Message):
    """WriteTxnMarkers request, versions 1 to 2."""

    API_KEY: ClassVar[int] = 27
    VERSIONS: ClassVar[tuple[int, int]] = (1, 2)
    FLEXIBLE: ClassVar[int] = 1

    markers: list[WritableTxnMarker] = []


class WritableTxnMarkerPartitionResult(Message):
    """Part of WriteTxnMarkersResponse."""

    partition_index: Int32 = 0
    error_code: Int16 = 0


class WritableTxnMarkerTopicResult(Message):
    """Part of WriteTxnMarkersResponse."""

    name: String = ""
    partitions: list[WritableTxnMarkerPartitionResult] = []


class WritableTxnMarkerResult(Message):
    """Part of WriteTxnMarkersResponse."""

    producer_id: Int64 = 0
    topics: list[WritableTxnMarkerTopicResult] = []


class WriteTxnMarkersResponse(Message):
    """WriteTxnMarkers response, versions 1 to 2."""

    API_KEY: ClassVar[int] = 27
    VERSIONS: ClassVar[tuple[int, int]] = (1, 2)
    FLEXIBLE: ClassVar[int] = 1

    markers: list[WritableTxnMarkerResult] = []
