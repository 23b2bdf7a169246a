"""The interface of a SASL mechanism's server side to the login of a connection."""

from __future__ import annotations

from typing import Protocol


class ServerExchange(Protocol):
    """A login seen by the broker: pass each message of the peer to `respond` until `is_complete`."""

    @property
    def is_complete(self) -> bool:
        """True once the peer is authenticated."""
        ...

    @property
    def user(self) -> str:
        """The authenticated user's name; empty before `is_complete`."""
        ...

    @property
    def expires_ms(self) -> int | None:
        """The time at which the credential expires, in milliseconds since the epoch; None if it does not."""
        ...

    def respond(self, message: bytes) -> bytes:
        """Return the response to the peer's message.

        Raises LoginFailed; the exchange then accepts no further message.
        """
        ...
