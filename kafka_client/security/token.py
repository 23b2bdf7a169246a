"""OAuth bearer tokens, and a cache that keeps one until shortly before it expires."""

from __future__ import annotations

import asyncio
import base64
import inspect
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Union

from kafka_client.security.secret import Secret

FRESH_FACTOR = 0.8
"""A token is used for this part of its lifetime; Kafka's `sasl.login.refresh.window.factor`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A bearer token (RFC 6750)."""

    value: Secret
    expires_at: float | None = None
    """Seconds since the epoch; None if unknown: such a token is not cached."""
    extensions: Mapping[str, str] = field(default_factory=dict)
    """SASL extensions (KIP-342)."""

    @classmethod
    def of(cls, text: str) -> Token:
        """Return a token of this text; a JWT contains its expiry."""
        return cls(value=Secret(text), expires_at=_expiry(text))


TokenSource = Callable[[], Union["Token", str, Awaitable["Token"], Awaitable[str]]]
"""Returns a new token: a function, called in a thread, or a coroutine function."""


class TokenCache:
    """The current token of one source, kept while it is fresh; concurrent callers share one request."""

    def __init__(self, source: TokenSource, clock: Callable[[], float] = time.time) -> None:
        self._source = source
        self._clock = clock
        self._lock = asyncio.Lock()
        self._token: Token | None = None
        self._stale_at = 0.0

    async def get(self) -> Token:
        """Return a fresh token; raises what the source raises."""
        async with self._lock:
            if self._token is None or self._clock() >= self._stale_at:
                self._token = await self._ask()
                now = self._clock()
                left = 0.0 if self._token.expires_at is None else self._token.expires_at - now
                self._stale_at = now + FRESH_FACTOR * left
            return self._token

    def forget(self) -> None:
        """Drop a token that the broker refused: the next `get` requests a new one."""
        self._token = None

    async def _ask(self) -> Token:
        if inspect.iscoroutinefunction(self._source):
            result: Any = await self._source()
        else:
            result = await asyncio.to_thread(self._source)
            if inspect.isawaitable(result):
                result = await result
        return result if isinstance(result, Token) else Token.of(str(result))


def _expiry(text: str) -> float | None:
    """Return the claim `exp` of a JWT, not verified; None without it, or if the token is no JWT."""
    parts = text.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return float(claims["exp"])
    except (ValueError, KeyError, TypeError):
        return None
