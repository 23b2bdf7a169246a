"""The login in front of a connection: which requests pass, and the responses to those of the login.

`logd.security.login` knows the states. An unauthenticated peer costs one request of `LOGIN_BYTES_MAX` bytes,
for at most `LOGIN_SECONDS_MAX` seconds.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Protocol

from kafka_client.errors import ErrorCode
from logd.api.request.answer import Refused
from logd.api.table import API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE
from logd.security.errors import LoginFailed
from logd.security.login import Login, State

if TYPE_CHECKING:
    from kafka_client.wire.messages.sasl_authenticate import SaslAuthenticateResponse
    from logd.api.dispatch.dispatch import Outcome, Serving
    from logd.api.request.context import RequestContext

LOGIN_BYTES_MAX = 524_288
"""Largest request before the login; Kafka's sasl.server.max.receive.size."""
LOGIN_SECONDS_MAX = 30.0
_KEY = struct.Struct(">hh")
_LENGTH = struct.Struct(">i")

log = logging.getLogger("logd.server")


class GatedConnection(Protocol):
    """A connection, as its login sees it."""

    peer: str

    def set_request_bytes_max(self, size: int | None) -> None:
        """Set the largest size of a request, in bytes. None sets it to the listener's own limit."""

    def finish(self) -> None:
        """Close the connection after what has been sent."""


class SaslGate:
    """The gate of one connection. A failed login is answered after `failure_delay` seconds."""

    def __init__(
        self,
        connection: GatedConnection,
        login: Login,
        loop: asyncio.AbstractEventLoop,
        *,
        failure_delay: float,
    ) -> None:
        self._connection = connection
        self._login = login
        self._loop = loop
        self._failure_delay = failure_delay
        self._is_raw = False
        """True after SaslHandshake 0: the mechanism's messages have no request headers."""
        self._serve: Serving
        connection.set_request_bytes_max(LOGIN_BYTES_MAX)
        self._timer = loop.call_later(LOGIN_SECONDS_MAX, self._too_slow)

    def over(self, serve: Serving) -> Serving:
        """Return the function that lets requests through to `serve`, once the peer is logged in."""
        self._serve = serve
        return self._pass

    def close(self) -> None:
        """Stop waiting for the login."""
        self._timer.cancel()

    def _pass(self, view: memoryview, pos: int, end: int, context: RequestContext) -> Outcome:
        login = self._login
        if self._is_raw and login.state is State.EXCHANGE:
            return self._answer_raw(bytes(view[pos:end]), context)
        if end - pos < _KEY.size:
            raise Refused(f"sent a request of {end - pos} bytes, too short for a header")
        key, version = _KEY.unpack_from(view, pos)
        if login.state is State.SESSION:
            assert login.session is not None
            now_ms = self._now_ms()
            if key == SASL_HANDSHAKE and version and login.may_renew(now_ms):
                return self._shake_hands(bytes(view[pos:end]), version)
            if login.session.is_expired(now_ms):
                raise Refused(f"goes on after the end of the session of user {login.session.user!r}")
            return self._serve(view, pos, end, context)
        if login.state is State.HANDSHAKE:
            if key == API_VERSIONS:
                return self._serve(view, pos, end, context)
            if key == SASL_HANDSHAKE and 0 <= version <= 1:
                return self._shake_hands(bytes(view[pos:end]), version)
        elif login.state is State.EXCHANGE and key == SASL_AUTHENTICATE and 0 <= version <= 2:
            return self._authenticate(bytes(view[pos:end]), version, context)
        raise Refused(f"sent API {key} version {version} before its login (SASL)")

    def _shake_hands(self, request: bytes, version: int) -> Outcome:
        from kafka_client.wire import decode, decode_request_header, encode_response
        from kafka_client.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

        header = decode_request_header(request)
        mechanism = decode(SaslHandshakeRequest, version, request, header.body).mechanism
        response = SaslHandshakeResponse(mechanisms=self._login.mechanisms)
        try:
            is_enabled = self._login.shake_hands(mechanism)
        except LoginFailed as error:
            raise Refused(str(error)) from None
        if not is_enabled:
            response.error_code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
        self._is_raw = version == 0
        answer = encode_response(response, version, header.correlation_id)
        if is_enabled:
            return answer
        return self._fail(answer, f"asked for SASL mechanism {mechanism[:40]!r}, which is not enabled")

    def _authenticate(self, request: bytes, version: int, context: RequestContext) -> Outcome:
        from kafka_client.wire import decode, decode_request_header, encode_response
        from kafka_client.wire.messages.sasl_authenticate import (
            SaslAuthenticateRequest,
            SaslAuthenticateResponse,
        )

        header = decode_request_header(request)
        message = decode(SaslAuthenticateRequest, version, request, header.body).auth_bytes
        response: SaslAuthenticateResponse
        failure = ""
        try:
            data = self._respond(message, context)
        except LoginFailed as error:
            failure = f"login failed: {error}"
            response = SaslAuthenticateResponse(
                error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=self._login.failure_text(error)
            )
        else:
            session = self._login.session
            lifetime_ms = session.lifetime_ms if session and self._login.state is State.SESSION else 0
            response = SaslAuthenticateResponse(auth_bytes=data, session_lifetime_ms=lifetime_ms)
        answer = encode_response(response, version, header.correlation_id)
        return self._fail(answer, failure) if failure else answer

    def _answer_raw(self, message: bytes, context: RequestContext) -> Outcome:
        try:
            data = self._respond(message, context)
        except LoginFailed as error:
            raise Refused(f"login failed: {error}") from None
        return _LENGTH.pack(len(data)) + data

    def _respond(self, message: bytes, context: RequestContext) -> bytes:
        login = self._login
        data = login.authenticate(message, now_ms=self._now_ms(), wall_ms=context.broker.now_ms())
        if login.state is State.SESSION:
            assert login.session is not None
            session, brokers = login.session, context.broker.broker_login
            context.principal = f"User:{session.user}"
            context.is_broker = brokers is not None and brokers.is_login_of_broker(
                context.endpoint.listener, session.mechanism, session.user
            )
            self._timer.cancel()
            self._connection.set_request_bytes_max(None)
        return data

    def _fail(self, answer: bytes, reason: str) -> Coroutine[Any, Any, bytes]:
        """Log the failure, answer after the delay, and close. The delay slows down guessing, as in Kafka."""
        log.warning("%s: %s; connection closed", self._connection.peer, reason)
        self._timer.cancel()

        async def later() -> bytes:
            await asyncio.sleep(self._failure_delay)
            # Two turns of the loop later the connection has sent the answer.
            self._loop.call_soon(self._loop.call_soon, self._connection.finish)
            return answer

        return later()

    def _too_slow(self) -> None:
        log.warning(
            "%s: not logged in after %.0f s; connection closed", self._connection.peer, LOGIN_SECONDS_MAX
        )
        self._connection.finish()

    def _now_ms(self) -> float:
        return self._loop.time() * 1000
