"""What a SASL mechanism is to whoever logs in a connection."""

from __future__ import annotations

from typing import Protocol


class Exchange(Protocol):
    """One login: `first` once, then `respond` to each answer of the broker until it returns None.

    Raises AuthenticationFailed when the broker's answer shows that it is not to be trusted.
    """

    def first(self) -> bytes:
        """The client's first message."""
        ...

    async def respond(self, challenge: bytes) -> bytes | None:
        """The next message; None when the broker's answer was the last one and is right."""
        ...


class Mechanism(Protocol):
    """Makes exchanges, for one client's connections."""

    @property
    def name(self) -> str:
        """As SaslHandshake names it."""
        ...

    @property
    def user(self) -> str:
        """Who logs in, for messages; empty where only the token says."""
        ...

    async def begin(self) -> Exchange:
        """A new exchange. Raises AuthenticationFailed or, where trying again may help, ConnectionClosed."""
        ...
