"""SASL OAUTHBEARER (RFC 7628, KIP-255): a bearer token from the client's token source."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kafka_client.errors import AuthenticationFailed
from kafka_client.security.mechanism import Exchange
from kafka_client.security.token import Token, TokenCache

_SEPARATOR = "\x01"
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")


@dataclass(frozen=True, slots=True)
class OAuthBearer:
    """The mechanism."""

    tokens: TokenCache
    name: str = "OAUTHBEARER"
    user: str = ""

    async def begin(self) -> Exchange:
        """Start an exchange of one message. Raises what the token's source raises."""
        token = await self.tokens.get()
        if not _TOKEN.fullmatch(token.value.reveal()):
            raise AuthenticationFailed(
                "the token has characters that RFC 6750 does not allow", mechanism=self.name
            )
        return _OAuthBearerExchange(token, self.tokens)


class _OAuthBearerExchange:
    def __init__(self, token: Token, tokens: TokenCache) -> None:
        self._token = token
        self._tokens = tokens

    def first(self) -> bytes:
        fields = {"auth": f"Bearer {self._token.value.reveal()}", **self._token.extensions}
        listed = "".join(f"{name}={value}{_SEPARATOR}" for name, value in fields.items())
        return f"n,,{_SEPARATOR}{listed}{_SEPARATOR}".encode()

    async def respond(self, challenge: bytes) -> bytes | None:
        if not challenge:
            return None
        # The challenge is the token's error as JSON; the broker ends the login after this response.
        self._tokens.forget()
        return _SEPARATOR.encode()
