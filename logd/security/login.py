"""The states of a SASL connection: from the handshake to the session, and to a renewed one.

    state        SaslHandshake        SaslAuthenticate            another request
    HANDSHAKE    -> EXCHANGE          refused                     refused, but for ApiVersions
    EXCHANGE     refused              -> EXCHANGE, SESSION,       refused
                                         or FAILED
    SESSION      -> EXCHANGE if the   the handlers answer         served until the session expires
                 session expires      ILLEGAL_SASL_STATE
    FAILED       refused              refused                     refused

"Refused" closes the connection, as Kafka does (KIP-43, KIP-152, KIP-368). This module knows no connection
and no clock: times are passed in, in milliseconds.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto

from logd.security.errors import LoginFailed, LoginRefused
from logd.security.exchange import ServerExchange

RENEWAL_PAUSE_MS = 1000
"""A session is not renewed sooner after its beginning, as in Kafka."""

NewExchange = Callable[[], ServerExchange]


class State(Enum):
    """The state of a login."""

    HANDSHAKE = auto()
    EXCHANGE = auto()
    SESSION = auto()
    FAILED = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """An authenticated session, in the time of a clock that does not jump."""

    user: str
    mechanism: str
    began_ms: float
    lifetime_ms: int
    """0 if the session does not end."""

    def is_expired(self, now_ms: float) -> bool:
        """Return True if the session has ended."""
        return self.lifetime_ms > 0 and now_ms - self.began_ms > self.lifetime_ms


class Login:
    """The login of one connection.

    `mechanisms` are the enabled mechanisms: what makes the server's side of an exchange, by name. Sessions
    last at most `max_reauth_ms` (connections.max.reauth.ms), without a limit if it is 0.
    """

    def __init__(self, mechanisms: Mapping[str, NewExchange], *, max_reauth_ms: int = 0) -> None:
        self._mechanisms = mechanisms
        self._max_reauth_ms = max_reauth_ms
        self._exchange: ServerExchange | None = None
        self._mechanism = ""
        self.state = State.HANDSHAKE
        self.session: Session | None = None
        """The session that was established last; it goes on while it is renewed."""

    @property
    def mechanisms(self) -> list[str]:
        """The names of the enabled mechanisms."""
        return list(self._mechanisms)

    def may_renew(self, now_ms: float) -> bool:
        """Return True if a handshake on a live session begins a renewal (KIP-368)."""
        session = self.session
        return session is not None and bool(
            session.lifetime_ms and now_ms - session.began_ms > RENEWAL_PAUSE_MS
        )

    def shake_hands(self, mechanism: str) -> bool:
        """Choose the mechanism. Return False if it is not enabled: the connection is closed then.

        Raises LoginRefused if a renewal asks for another mechanism than the session's.
        """
        new_exchange = self._mechanisms.get(mechanism)
        if new_exchange is None:
            self.state = State.FAILED
            return False
        if self.session is not None and self.session.mechanism != mechanism:
            self.state = State.FAILED
            raise LoginRefused(
                f"SASL mechanism '{mechanism}' requested by client is not that of the session, "
                f"'{self.session.mechanism}'"
            )
        self._mechanism, self._exchange = mechanism, new_exchange()
        self.state = State.EXCHANGE
        return True

    def preparation(self, message: bytes) -> Awaitable[None] | None:
        """Return what to wait for before `authenticate`, or None."""
        assert self._exchange is not None, "shake hands first"
        return self._exchange.preparation(message)

    @property
    def refusal(self) -> str:
        """Why the peer is refused, if it was told and has not acknowledged it yet; else empty."""
        return "" if self._exchange is None else self._exchange.refusal

    def authenticate(self, message: bytes, *, now_ms: float, wall_ms: int) -> bytes:
        """Return the mechanism's response; `session` is new once the state is SESSION.

        `wall_ms` is the time since the epoch, by which credentials expire. Raises LoginFailed.
        """
        exchange = self._exchange
        assert exchange is not None, "shake hands first"
        try:
            response = exchange.respond(message)
            if exchange.is_complete:
                self._establish(exchange, now_ms, wall_ms)
        except LoginFailed:
            self.state, self._exchange = State.FAILED, None
            raise
        return response

    def failure_text(self, error: LoginFailed) -> str:
        """Return what the peer is told: why it may know, or only that its credentials are invalid."""
        if isinstance(error, LoginRefused):
            return error.reason
        what = "authentication" if self.session is None else "re-authentication"
        return (
            f"Authentication failed during {what} due to invalid credentials with SASL mechanism "
            f"{self._mechanism}"
        )

    def _establish(self, exchange: ServerExchange, now_ms: float, wall_ms: int) -> None:
        before = self.session
        if before is not None and before.user != exchange.user:
            raise LoginRefused(
                "Cannot change principals during re-authentication from "
                f"User.{before.user}: User.{exchange.user}"
            )
        lifetime_ms = self._max_reauth_ms
        if exchange.expires_ms is not None:
            left_ms = exchange.expires_ms - wall_ms
            if left_ms <= 0:
                raise LoginFailed(f"the credential of user {exchange.user!r} has expired")
            lifetime_ms = min(left_ms, lifetime_ms) if lifetime_ms else left_ms
        self.session = Session(
            user=exchange.user, mechanism=self._mechanism, began_ms=now_ms, lifetime_ms=lifetime_ms
        )
        self.state, self._exchange = State.SESSION, None
