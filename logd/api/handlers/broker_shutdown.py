"""BrokerShutdown, 0: an operator wants this broker to stop, just as by SIGTERM.

Nobody's identity is checked: millstream.remote.shutdown.enable is what guards it. That setting cannot be
changed over the network, so a client cannot grant itself access.
"""

from __future__ import annotations

import logging

from kafka_client.errors import ErrorCode
from kafka_client.wire.private.broker_shutdown import BrokerShutdownRequest, BrokerShutdownResponse
from logd.api.request.context import RequestContext

REQUEST = BrokerShutdownRequest

log = logging.getLogger("logd")


def handle(request: BrokerShutdownRequest, context: RequestContext) -> BrokerShutdownResponse:
    """Answer first: the stop begins in the loop's next turn. Asked once more it answers the same."""
    broker = context.broker
    own = broker.node_id
    if request.broker_id != own:
        return _refused(ErrorCode.INVALID_REQUEST, f"this is broker {own}, not broker {request.broker_id}")
    if not broker.config.millstream_remote_shutdown_enable:
        return _refused(
            ErrorCode.POLICY_VIOLATION, f"broker {own} has millstream.remote.shutdown.enable=false"
        )
    if broker.on_shutdown is None:
        return _refused(
            ErrorCode.INVALID_REQUEST,
            f"broker {own} is run by a process that runs more than this broker: stop that one",
        )
    log.warning("%s at %s asks this broker to stop", context.principal, context.client_host)
    broker.on_shutdown()
    return BrokerShutdownResponse()


def _refused(code: ErrorCode, message: str) -> BrokerShutdownResponse:
    return BrokerShutdownResponse(error_code=code, error_message=message)
