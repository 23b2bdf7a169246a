"""The rules for a token's claims, as in Kafka's BrokerJwtValidator."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from logd.security.oauthbearer.errors import InvalidToken

_MS = 1000
_SECONDS_MAX = 1e12
"""Times after the year 33,000 are no times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedToken:
    """The user that a valid token names."""

    user: str
    expires_ms: int
    """The end of the token's life, in milliseconds since the epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRules:
    """The settings by which claims are checked."""

    audiences: frozenset[str] = frozenset()
    """sasl.oauthbearer.expected.audience; empty if every audience is accepted."""
    issuer: str | None = None
    """sasl.oauthbearer.expected.issuer; None if every issuer is accepted."""
    skew_ms: int = 30_000
    """The allowed difference between the clocks of issuer and broker."""
    scope_claim: str = "scope"
    user_claim: str = "sub"

    def check(self, claims: Mapping[str, Any], now_ms: float) -> AcceptedToken:
        """Return the user of valid claims. Raises InvalidToken for the first claim that is not."""
        expires_ms = self._check_times(claims, now_ms)
        if self.issuer is not None and claims.get("iss") != self.issuer:
            raise InvalidToken(
                'its claim "iss" is not the expected issuer (sasl.oauthbearer.expected.issuer)'
            )
        if self.audiences and not self.audiences & set(_texts(claims.get("aud"))):
            raise InvalidToken(
                'its claim "aud" has none of the expected audiences (sasl.oauthbearer.expected.audience)'
            )
        self._check_scope(claims.get(self.scope_claim))
        return AcceptedToken(user=user_of(claims, self.user_claim), expires_ms=expires_ms)

    def _check_times(self, claims: Mapping[str, Any], now_ms: float) -> int:
        expires_ms = time_ms(claims, "exp")
        issued_ms = time_ms(claims, "iat")
        if now_ms - self.skew_ms >= expires_ms:
            raise InvalidToken(f"it expired {(now_ms - expires_ms) / _MS:.0f} s ago")
        if expires_ms < issued_ms:
            raise InvalidToken('its claim "exp" is before "iat"')
        if "nbf" in claims:
            begins_ms = time_ms(claims, "nbf")
            if expires_ms < begins_ms:
                raise InvalidToken('its claim "exp" is before "nbf"')
            if begins_ms - self.skew_ms > now_ms:
                raise InvalidToken(f"it begins in {(begins_ms - now_ms) / _MS:.0f} s")
        return expires_ms

    def _check_scope(self, scope: object) -> None:
        """Check the claim as Kafka does. Scopes give no rights: ACLs do."""
        if isinstance(scope, str):
            names: list[object] = [scope]
        else:
            names = list(scope) if isinstance(scope, list) else []
        texts = [name.strip() if isinstance(name, str) else "" for name in names]
        if "" in texts or len(set(texts)) < len(texts):
            raise InvalidToken(f'its claim "{self.scope_claim}" has an empty scope, or one twice')


def time_ms(claims: Mapping[str, Any], name: str) -> int:
    """Return a claim's time in milliseconds since the epoch. Raises InvalidToken if it has none."""
    if name not in claims:
        raise InvalidToken(f'it has no claim "{name}"')
    value = claims[name]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or not 0 <= value <= _SECONDS_MAX:
        raise InvalidToken(f'its claim "{name}" is no time in seconds since 1970')
    return int(value) * _MS  # whole seconds, as in Kafka


def user_of(claims: Mapping[str, Any], name: str) -> str:
    """Return the user's name in a claim. Raises InvalidToken if it has none that can be written."""
    user = claims.get(name)
    if not isinstance(user, str) or not user.strip():
        raise InvalidToken(f'its claim "{name}" has no user name')
    # A name with control characters could forge lines of the log and write to an operator's terminal.
    if not user.strip().isprintable():
        raise InvalidToken(f'its claim "{name}" has characters that cannot be printed')
    return user.strip()


def _texts(claim: object) -> list[str]:
    if isinstance(claim, str):
        return [claim]
    return [each for each in claim if isinstance(each, str)] if isinstance(claim, list) else []
