"""UnregisterController: the request and the response, over all their versions."""

from typing import ClassVar

from kafka_client.wire.message import Int16, Int32, Message, String


class UnregisterControllerRequest(Message):
    """UnregisterController request, version 0."""

    API_KEY: ClassVar[int] = 94
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    controller_id: Int32 = 0


class UnregisterControllerResponse(Message):
    """UnregisterController response, version 0."""

    API_KEY: ClassVar[int] = 94
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
