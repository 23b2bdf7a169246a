"""EndTxn: the request and the response, over all their versions."""

from typing import Annotated, ClassVar

from kafka_client.wire.message import Boolean, Int16, Int32, Int64, Message, String, V


class EndTxnRequest(Message):
    """EndTxn request, versions 0 to 5."""

    API_KEY: ClassVar[int] = 26
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE: ClassVar[int] = 3

    transactional_id: String = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    committed: Boolean = False


class EndTxnResponse(Message):
    """EndTxn response, versions 0 to 5."""

    API_KEY: ClassVar[int] = 26
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE: ClassVar[int] = 3

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id: Annotated[Int64, V(5)] = -1
    producer_epoch: Annotated[Int16, V(5)] = -1
