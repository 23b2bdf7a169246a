"""The interface of a SASL mechanism to the login of a connection."""

from __future__ import annotations

from typing import Protocol


class Exchange(Protocol):
    """A login exchange: call `first` once, then `respond` with each response of the broker until it returns
    None.

    Raises AuthenticationFailed if the broker's response shows that it cannot be trusted.
    """

    def first(self) -> bytes:
        """Return the client's first message."""
        ...

    async def respond(self, challenge: bytes) -> bytes | None:
        """Return the next message; None if the broker's response was the last one and is valid."""
        ...


class Mechanism(Protocol):
    """A SASL mechanism, which starts exchanges for one client's connections."""

    @property
    def name(self) -> str:
        """The name for SaslHandshake."""
        ...

    @property
    def user(self) -> str:
        """The user's name for error texts; empty if only the token has it."""
        ...

    async def begin(self) -> Exchange:
        """Return a new exchange. Raises AuthenticationFailed, or ConnectionClosed if a retry may help."""
        ...
