"""AddOffsetsToTxn: the request and the response, over all their versions."""

from typing import ClassVar

from kafka_client.wire.message import Int16, Int32, Int64, Message, String


class AddOffsetsToTxnRequest(Message):
    """AddOffsetsToTxn request, versions 0 to 4."""

    API_KEY: ClassVar[int] = 25
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE: ClassVar[int] = 3

    transactional_id: String = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    group_id: String = ""


class AddOffsetsToTxnResponse(Message):
    """AddOffsetsToTxn response, versions 0 to 4."""

    API_KEY: ClassVar[int] = 25
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE: ClassVar[int] = 3

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
