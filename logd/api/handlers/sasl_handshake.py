"""SaslHandshake, 0 to 1: refused, since no listener has SASL: clients need not authenticate (KIP-43)."""

from __future__ import annotations

from kafka_client.errors import ErrorCode
from kafka_client.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from logd.api.request.context import RequestContext

REQUEST = SaslHandshakeRequest


def handle(request: SaslHandshakeRequest, context: RequestContext) -> SaslHandshakeResponse:
    """Answer ILLEGAL_SASL_STATE, as Apache Kafka does on a PLAINTEXT listener."""
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
