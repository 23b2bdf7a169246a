"""BrokerShutdown: an operator wants a broker to stop (`millstream broker shutdown`)."""

from typing import ClassVar

from kafka_client.wire.message import Int16, Int32, Message, String


class BrokerShutdownRequest(Message):
    """BrokerShutdown request, version 0. `broker_id`: who is meant; another one at its address refuses."""

    API_KEY: ClassVar[int] = 10_002
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    broker_id: Int32 = -1


class BrokerShutdownResponse(Message):
    """BrokerShutdown response, version 0. Without an error it has begun to stop."""

    API_KEY: ClassVar[int] = 10_002
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    error_code: Int16 = 0
    error_message: String | None = None
