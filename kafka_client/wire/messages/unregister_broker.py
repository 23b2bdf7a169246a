"""UnregisterBroker: the request and the response, over all their versions."""

from typing import ClassVar

from kafka_client.wire.message import Int16, Int32, Message, String


class UnregisterBrokerRequest(Message):
    """UnregisterBroker request, version 0."""

    API_KEY: ClassVar[int] = 64
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    broker_id: Int32 = 0


class UnregisterBrokerResponse(Message):
    """UnregisterBroker response, version 0."""

    API_KEY: ClassVar[int] = 64
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
