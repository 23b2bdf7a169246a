"""DefaultPrincipalData: a client's principal as it travels in an Envelope, over all versions."""

from typing import ClassVar

from kafka_client.wire.message import Boolean, Message, String


class DefaultPrincipalData(Message):
    """DefaultPrincipalData, version 0."""

    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    type_: String = ""
    name: String = ""
    token_authenticated: Boolean = False
