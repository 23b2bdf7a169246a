"""SaslHandshake: the request and the response, over all their versions."""

from typing import ClassVar

from kafka_client.wire.message import NEVER, Int16, Message, String


class SaslHandshakeRequest(Message):
    """SaslHandshake request, versions 0 to 1."""

    API_KEY: ClassVar[int] = 17
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE: ClassVar[int] = NEVER

    mechanism: String = ""


class SaslHandshakeResponse(Message):
    """SaslHandshake response, versions 0 to 1."""

    API_KEY: ClassVar[int] = 17
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE: ClassVar[int] = NEVER

    error_code: Int16 = 0
    mechanisms: list[String] = []
