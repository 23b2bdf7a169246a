"""WriteTxnMarkers: the request and the response, over all their versions."""

from typing import Annotated, ClassVar

from logd.wire.message import Boolean, Int8, Int16, Int32, Int64, Message, String, V


class WritableTxnMarkerTopic(Message):
    """Part of WriteTxnMarkersRequest."""

    name: String = ""
    partition_indexes: list[Int32] = []


class WritableTxnMarker(Message):
    """Part of WriteTxnMarkersRequest."""

    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    transaction_result: Boolean = False
    topics: list[WritableTxnMarkerTopic] = []
    coordinator_epoch: Int32 = 0
    transaction_version: Annotated[Int8, V(2)] = 0


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
