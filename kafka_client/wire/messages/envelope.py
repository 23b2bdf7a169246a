"""Envelope: the request and the response, over all their versions."""

from typing import ClassVar

from kafka_client.wire.message import Bytes, Int16, Message


class EnvelopeRequest(Message):
    """Envelope request, version 0."""

    API_KEY: ClassVar[int] = 58
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    request_data: Bytes = b""
    request_principal: Bytes | None = None
    client_host_address: Bytes = b""


class EnvelopeResponse(Message):
    """Envelope response, version 0."""

    API_KEY: ClassVar[int] = 58
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    response_data: Bytes | None = None
    error_code: Int16 = 0
