"""SaslAuthenticate, 0 to 2: the messages of a login (KIP-152). Only brokers log in, after SaslHandshake."""

from __future__ import annotations

import logging

from kafka_client.errors import ErrorCode
from kafka_client.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from logd.api.request.context import RequestContext
from logd.security.errors import LoginFailed

REQUEST = SaslAuthenticateRequest

log = logging.getLogger("logd.server")


def handle(request: SaslAuthenticateRequest, context: RequestContext) -> SaslAuthenticateResponse:
    """Answer ILLEGAL_SASL_STATE without a handshake, as Apache Kafka does on a PLAINTEXT listener.

    After a failure the peer has to begin again with a handshake.
    """
    exchange = context.broker_exchange
    if exchange is None:
        return SaslAuthenticateResponse(
            error_code=ErrorCode.ILLEGAL_SASL_STATE,
            error_message="SaslAuthenticate request received after successful authentication",
        )
    try:
        response = exchange.respond(request.auth_bytes)
    except LoginFailed as error:
        context.broker_exchange = None
        log.warning("%s: login as a broker of the cluster failed: %s", context.client_host, error)
        return SaslAuthenticateResponse(
            error_code=ErrorCode.SASL_AUTHENTICATION_FAILED,
            error_message="the login as a broker of the cluster failed: its secret is in ZooKeeper",
        )
    if exchange.is_complete:
        context.broker_exchange = None
        context.is_broker = True
        context.principal = f"User:{exchange.user}"
    return SaslAuthenticateResponse(auth_bytes=response)
