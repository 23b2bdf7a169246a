"""SaslAuthenticate: the request and the response, over all their versions."""

from typing import Annotated, ClassVar

from kafka_client.wire.message import Bytes, Int16, Int64, Message, String, V


class SaslAuthenticateRequest(Message):
    """SaslAuthenticate request, versions 0 to 2."""

    API_KEY: ClassVar[int] = 36
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE: ClassVar[int] = 2

    auth_bytes: Bytes = b""


class SaslAuthenticateResponse(Message):
    """SaslAuthenticate response, versions 0 to 2."""

    API_KEY: ClassVar[int] = 36
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE: ClassVar[int] = 2

    error_code: Int16 = 0
    error_message: String | None = None
    auth_bytes: Bytes = b""
    session_lifetime_ms: Annotated[Int64, V(1)] = 0
