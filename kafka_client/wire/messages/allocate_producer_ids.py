"""AllocateProducerIds: the request and the response (KIP-730)."""

from typing import ClassVar

from kafka_client.wire.message import Int16, Int32, Int64, Message


class AllocateProducerIdsRequest(Message):
    """AllocateProducerIds request, version 0."""

    API_KEY: ClassVar[int] = 67
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    broker_id: Int32 = 0
    broker_epoch: Int64 = -1


class AllocateProducerIdsResponse(Message):
    """AllocateProducerIds response, version 0."""

    API_KEY: ClassVar[int] = 67
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id_start: Int64 = 0
    producer_id_len: Int32 = 0
