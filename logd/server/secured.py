"""The parts that only connections of a secured listener have: TLS on the way out, and a login."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from logd.config.broker import BrokerConfig
from logd.security.listener_security import ListenerSecurity
from logd.security.login import Login
from logd.server.output import Output
from logd.server.sasl_gate import GatedConnection, SaslGate
from logd.server.tls_output import TlsOutput


def output_of(
    security: ListenerSecurity,
    loop: asyncio.AbstractEventLoop,
    transport: asyncio.Transport,
    *,
    copies: bool,
    drained: Callable[[], None],
    failed: Callable[[OSError], None],
) -> Output | TlsOutput:
    """Return the sending side of a connection."""
    if security.tls is not None:
        return TlsOutput(loop, transport, drained=drained, failed=failed)
    return Output(loop, copy=copies, drained=drained, failed=failed)


def gate_of(
    security: ListenerSecurity,
    connection: GatedConnection,
    loop: asyncio.AbstractEventLoop,
    config: BrokerConfig,
) -> SaslGate | None:
    """Return the login of a connection, None on a listener without SASL."""
    if not security.mechanisms:
        return None
    login = Login(security.mechanisms, max_reauth_ms=config.connections_max_reauth_ms)
    delay = config.connection_failed_authentication_delay_ms / 1000
    return SaslGate(connection, login, loop, failure_delay=delay)
