"""The parts that only secured listeners and their connections have: users, a login, TLS on the way out."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING

from logd.api.request.answer import NotYet
from logd.config.broker import BrokerConfig
from logd.config.listeners import bound_endpoints, inter_broker_listener
from logd.security.listener_security import BetweenBrokers, ListenerSecurity, listener_security
from logd.security.login import Login
from logd.security.scram_users import ScramUsers
from logd.security.subject_name import subject_name
from logd.server.output import Output
from logd.server.sasl_gate import GatedConnection, SaslGate
from logd.server.tls_output import TlsOutput

if TYPE_CHECKING:
    from logd.broker.broker import Broker


def users_of(broker: Broker) -> ScramUsers:
    """Return the users that the broker's metadata has, which is read at each login."""

    def check_ready() -> None:
        if broker.membership is not None and not broker.membership.has_joined:
            raise NotYet("wants to log in, and this broker has not joined its cluster yet")

    def decoy_key() -> bytes:
        login = broker.broker_login
        return broker.image.decoy_key if login is None else login.decoy_key

    return ScramUsers(lambda user: broker.image.user_configs.get(user, {}), decoy_key, check_ready)


def security_of(broker: Broker, listener: str, protocol: str) -> ListenerSecurity | None:
    """Return the security of one of the broker's listeners. Reads key stores. Raises ConfigError."""
    config = broker.config
    between = None
    listeners = [endpoint.listener for endpoint in bound_endpoints(config)]
    if config.is_clustered and inter_broker_listener(config, listeners) == listener:
        between = BetweenBrokers(
            mechanism=config.sasl_mechanism_inter_broker_protocol, account=lambda: broker.broker_login
        )
    return listener_security(config.explicit, listener, protocol, users_of(broker), between)


def principal_of(security: ListenerSecurity, transport: asyncio.Transport) -> str | None:
    """Return the principal of a peer that has shown its certificate, else None.

    Raises BadName or NoRuleApplies, whose texts say why the peer is refused.
    """
    if security.principal_rules is None:
        return None
    tls: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
    certificate = None if tls is None else tls.getpeercert(binary_form=True)
    if certificate is None:
        return None
    return security.principal_rules.principal_of(subject_name(certificate))


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
