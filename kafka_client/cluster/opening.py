"""A connection from its first packet until it is ready for use: TLS, versions, login."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable

from kafka_client.cluster.authentication import Authenticator
from kafka_client.cluster.connection import Connection
from kafka_client.cluster.handshake import ADVICE_SASL, ADVICE_TLS
from kafka_client.cluster.pool import Address
from kafka_client.cluster.versions import negotiate
from kafka_client.security.context import make_context
from kafka_client.security.settings import SecuritySettings


class ConnectionOpener:
    """Opens a client's connections, each within `timeout` seconds a step; the rest is as for `Client`."""

    def __init__(
        self,
        security: SecuritySettings,
        *,
        client_id: str,
        timeout: float,
        max_response_bytes: int,
        max_in_flight: int,
        random: Callable[[], float],
    ) -> None:
        self._security = security
        self._client_id = client_id
        self._timeout = timeout
        self._max_response_bytes = max_response_bytes
        self._max_in_flight = max_in_flight
        self._tls: ssl.SSLContext | None = None
        self._authenticator = Authenticator.of(security, client_id=client_id, timeout=timeout, random=random)

    async def open(self, address: Address) -> Connection:
        """Connect, negotiate and log in. ConnectionClosed if that fails, AuthenticationFailed if the broker
        does not let us in, ConfigError for key stores that cannot be used.
        """
        connection = await Connection.open(
            *address,
            timeout=self._timeout,
            max_response_bytes=self._max_response_bytes,
            max_in_flight=self._max_in_flight,
            tls=await self._tls_context(),
        )
        try:
            connection.advice = "" if self._security.uses_tls else ADVICE_TLS
            await negotiate(connection, client_id=self._client_id, timeout=self._timeout)
            if self._authenticator is not None:
                await self._authenticator.log_in(connection)
            else:
                connection.advice = ADVICE_SASL
        except BaseException:
            connection.close()
            raise
        return connection

    def use_tls(self, context: ssl.SSLContext) -> None:
        """Use this context for further connections, since certificates have changed."""
        self._tls = context

    async def _tls_context(self) -> ssl.SSLContext | None:
        if self._security.uses_tls and self._tls is None:
            self._tls = await asyncio.to_thread(make_context, self._security.tls)
        return self._tls
