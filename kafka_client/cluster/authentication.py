"""SASL authentication of a client's connections, repeated before a session ends (KIP-152, KIP-368).

    ApiVersions                       (done before: `versions.negotiate`)
    SaslHandshake 1                   chooses the mechanism
    SaslAuthenticate, back and forth  the mechanism's messages; the last one has the session's lifetime

During a login on a live connection further requests are held back. Requests in flight are answered first, and
the broker receives no others between handshake and login.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from kafka_client.cluster.connection import Connection
from kafka_client.cluster.versions import highest_common
from kafka_client.errors import AuthenticationFailed, ConnectionClosed, ErrorCode, MillstreamError, error_for
from kafka_client.security.mechanism import Exchange, Mechanism
from kafka_client.security.settings import SecuritySettings
from kafka_client.wire import Message, decode, decode_response_header, encode_request, response_class
from kafka_client.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kafka_client.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

_log = logging.getLogger(__name__)

RENEW_FROM, RENEW_TO = 0.85, 0.95
"""A session is renewed between these parts of its lifetime, as by Kafka's clients."""
_HANDSHAKE_VERSIONS = (1, 1)
"""Version 0 is followed by messages without a header, and has no error messages."""


class Authenticator:
    """An authenticator of connections by one mechanism. `timeout`: of each request, in seconds."""

    def __init__(
        self, mechanism: Mechanism, *, client_id: str, timeout: float, random: Callable[[], float]
    ) -> None:
        self._mechanism = mechanism
        self._client_id = client_id
        self._timeout = timeout
        self._random = random

    @classmethod
    def of(
        cls, security: SecuritySettings, *, client_id: str, timeout: float, random: Callable[[], float]
    ) -> Authenticator | None:
        """Return the authenticator for these settings; None without SASL."""
        if not security.uses_sasl or security.sasl is None:
            return None
        return cls(security.sasl.new_mechanism(), client_id=client_id, timeout=timeout, random=random)

    async def log_in(self, connection: Connection) -> None:
        """Authenticate a new, negotiated connection, and keep its session renewed in the background.

        Raises AuthenticationFailed, ConnectionClosed, RequestTimedOut, or KafkaError for another refusal.
        """
        lifetime = await self._authenticate(connection)
        if lifetime > 0:
            task = asyncio.create_task(self._stay(connection, lifetime), name=f"log-in-{connection.name}")
            connection.accompany(task)

    async def _stay(self, connection: Connection, lifetime: float) -> None:
        """Renew the session while the connection is open; a failed renewal closes it."""
        while lifetime > 0:
            part = RENEW_FROM + (RENEW_TO - RENEW_FROM) * self._random()
            await asyncio.sleep(part * lifetime)
            try:
                lifetime = await self._authenticate(connection)
            except MillstreamError as error:
                if connection.is_open:
                    _log.warning("%s: the session cannot be renewed: %s", connection.name, error)
                connection.fail(error)
                return

    async def _authenticate(self, connection: Connection) -> float:
        """Authenticate; return the session's lifetime in seconds, 0 for no limit."""
        exchange = await self._begin(connection)
        await connection.hold()
        try:
            await self._shake_hands(connection)
            return await self._exchange(connection, exchange)
        except AuthenticationFailed as error:
            raise self._failed(connection, error.reason) from None
        finally:
            connection.release()

    async def _begin(self, connection: Connection) -> Exchange:
        try:
            return await self._mechanism.begin()
        except AuthenticationFailed as error:
            raise self._failed(connection, error.reason) from None
        except ConnectionClosed:
            raise
        except Exception as error:
            # The source of tokens is the user's code.
            raise self._failed(connection, f"no token: {type(error).__name__}") from error

    async def _shake_hands(self, connection: Connection) -> None:
        name = self._mechanism.name
        response: SaslHandshakeResponse = await self._call(
            connection, SaslHandshakeRequest(mechanism=name), _HANDSHAKE_VERSIONS
        )
        if response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            enabled = ", ".join(response.mechanisms) or "none"
            raise self._failed(
                connection, f"the listener has other mechanisms enabled (sasl.mechanism): {enabled}"
            )
        if response.error_code == ErrorCode.ILLEGAL_SASL_STATE:
            raise self._failed(
                connection, "the listener asks for no SASL; set security.protocol to PLAINTEXT or SSL"
            )
        if response.error_code:
            raise error_for(response.error_code, f"SaslHandshake with {connection.name}")

    async def _exchange(self, connection: Connection, exchange: Exchange) -> float:
        message: bytes | None = exchange.first()
        lifetime_ms = 0
        while message is not None:
            request = SaslAuthenticateRequest(auth_bytes=message)
            response: SaslAuthenticateResponse = await self._call(connection, request, request.VERSIONS)
            if response.error_code:
                code = error_for(response.error_code).code
                raise self._failed(connection, response.error_message or code.name)
            lifetime_ms = response.session_lifetime_ms
            message = await exchange.respond(response.auth_bytes)
        return lifetime_ms / 1000

    async def _call(self, connection: Connection, message: Message, versions: tuple[int, int]) -> Any:
        key = message.API_KEY
        version = highest_common(key, versions, connection.versions, connection.name)
        payload = await connection.call_held(
            lambda correlation_id: encode_request(message, version, correlation_id, self._client_id),
            timeout=self._timeout,
        )
        _, pos = decode_response_header(key, version, payload)
        return decode(response_class(key), version, payload, pos)

    def _failed(self, connection: Connection, reason: str) -> AuthenticationFailed:
        return AuthenticationFailed(reason, self._mechanism.name, self._mechanism.user, connection.name)
