"""SaslHandshake, 0 to 1: chooses the mechanism of a login (KIP-43).

Where a listener asks for a login, `logd.server.sasl_gate` serves it. On other listeners clients need not log
in, so their handshakes are refused. If the listener between brokers is one of these, the brokers of a cluster
log in to each other here (`logd.broker.cluster.broker_login`).
"""

from __future__ import annotations

from kafka_client.errors import ErrorCode
from kafka_client.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from logd.api.request.context import RequestContext

REQUEST = SaslHandshakeRequest

_ENVELOPED = 1
"""The version after which SaslAuthenticate carries the mechanism's messages; before they have no header."""


def handle(request: SaslHandshakeRequest, context: RequestContext) -> SaslHandshakeResponse:
    """Begin the login of a broker. Answer ILLEGAL_SASL_STATE to others, as Kafka on a PLAINTEXT listener."""
    login = context.broker.broker_login
    if (
        login is None
        or not login.is_inner
        or context.is_broker
        or context.endpoint.listener != login.listener
        or request.mechanism != login.mechanism
        or context.version < _ENVELOPED
    ):
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    context.broker_exchange = login.begin()
    return SaslHandshakeResponse(mechanisms=[login.mechanism])
