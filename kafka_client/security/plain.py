"""SASL PLAIN (RFC 4616): user and password in plain text, which is only for TLS."""

from __future__ import annotations

from dataclasses import dataclass

from kafka_client.security.mechanism import Exchange
from kafka_client.security.secret import Secret


@dataclass(frozen=True, slots=True)
class Plain:
    """The mechanism."""

    user: str
    password: Secret
    name: str = "PLAIN"

    async def begin(self) -> Exchange:
        """Start an exchange of one message, without a challenge."""
        return _PlainExchange(self)


@dataclass(frozen=True, slots=True)
class _PlainExchange:
    _mechanism: Plain

    def first(self) -> bytes:
        return f"\0{self._mechanism.user}\0{self._mechanism.password.reveal()}".encode()

    async def respond(self, challenge: bytes) -> bytes | None:
        return None
