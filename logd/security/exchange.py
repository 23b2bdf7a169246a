"""The interface of a SASL mechanism's server side to the login of a connection."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol


class ServerExchange(Protocol):
    """A login seen by the broker: pass each message of the peer to `respond` until `is_complete`."""

    is_complete: bool
    """True once the peer is authenticated."""
    user: str
    """The authenticated user's name; empty before `is_complete`."""
    expires_ms: int | None
    """The time at which the credential expires, in milliseconds since the epoch; None if it does not."""

    def respond(self, message: bytes) -> bytes:
        """Return the response to the peer's message.

        Raises LoginFailed; the exchange then accepts no further message.
        """
        ...

    def preparation(self, message: bytes) -> Awaitable[None] | None:
        """Return what to wait for before `respond`, or None. The wait is bounded and does not fail."""
        return None

    @property
    def refusal(self) -> str:
        """Why the peer is refused, if it was told and has not acknowledged it yet; else empty."""
        return ""
