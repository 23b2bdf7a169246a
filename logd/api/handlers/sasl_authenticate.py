"""SaslAuthenticate, 0 to 2: refused, since no listener has SASL: clients need not authenticate (KIP-152)."""

from __future__ import annotations

from kafka_client.errors import ErrorCode
from kafka_client.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from logd.api.request.context import RequestContext

REQUEST = SaslAuthenticateRequest


def handle(request: SaslAuthenticateRequest, context: RequestContext) -> SaslAuthenticateResponse:
    """Answer ILLEGAL_SASL_STATE, as Apache Kafka does on a PLAINTEXT listener."""
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )
