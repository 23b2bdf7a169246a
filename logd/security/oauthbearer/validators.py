"""Validators of tokens: by signature and claims, or by claims alone.

`SignedTokens` is Kafka's BrokerJwtValidator; `UnsecuredTokens` is its handler of unsecured tokens.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

from logd.security.oauthbearer.errors import INSUFFICIENT_SCOPE, InvalidToken
from logd.security.oauthbearer.jwt import JsonWebToken
from logd.security.oauthbearer.keys import ALGORITHMS, KeySet
from logd.security.oauthbearer.token_rules import AcceptedToken, TokenRules, time_ms, user_of


class TokenValidator(Protocol):
    """A check of tokens."""

    def validate(self, text: str, now_ms: float) -> AcceptedToken:
        """Return what the token says of its user. Raises InvalidToken."""
        ...

    def preparation(self, text: str) -> Awaitable[None] | None:
        """Return what to wait for before `validate`, or None. It does not fail, and its time is bounded."""
        ...


class KeySource(Protocol):
    """A source of the issuer's keys."""

    @property
    def keys(self) -> KeySet:
        """The keys that were read last."""
        ...

    def refresh_for_key(self) -> Awaitable[None] | None:
        """Return a wait for newer keys, or None if there can be none now."""
        ...


class SignedTokens:
    """Tokens that one of the issuer's keys has signed."""

    def __init__(self, rules: TokenRules, source: KeySource) -> None:
        self._rules = rules
        self._source = source

    def preparation(self, text: str) -> Awaitable[None] | None:
        """Return a wait for the key that the token names, if it is not among those at hand."""
        try:
            token = JsonWebToken.parse(text)
        except InvalidToken:
            return None
        if token.algorithm not in ALGORITHMS or self._source.keys.find(token.key_id, token.algorithm):
            return None
        return self._source.refresh_for_key()

    def validate(self, text: str, now_ms: float) -> AcceptedToken:
        """Return what the token says of its user. Raises InvalidToken."""
        token = JsonWebToken.parse(text)
        if token.algorithm not in ALGORITHMS:
            raise InvalidToken("its algorithm is not one of " + ", ".join(sorted(ALGORITHMS)))
        keys = self._source.keys
        if not keys:
            raise InvalidToken("the keys of its issuer could not be read yet")
        candidates = keys.find(token.key_id, token.algorithm)
        if not candidates:
            raise InvalidToken(
                "none of the issuer's keys has its key id and algorithm (sasl.oauthbearer.jwks.endpoint.url)"
            )
        if not any(key.verifies(token.algorithm, token.signed, token.signature) for key in candidates):
            raise InvalidToken("its signature is wrong")
        return self._rules.check(token.claims(), now_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsecuredTokens:
    """Tokens without a signature, which anybody can make: for development only."""

    user_claim: str = "sub"
    scope_claim: str = "scope"
    required_scopes: tuple[str, ...] = field(default=())
    skew_ms: int = 0

    def preparation(self, text: str) -> None:
        """Return None: there is nothing to wait for."""

    def validate(self, text: str, now_ms: float) -> AcceptedToken:
        """Return what the token says of its user. Raises InvalidToken."""
        token = JsonWebToken.parse(text)
        if token.algorithm != "none" or token.signature:
            raise InvalidToken('it is signed, and this listener takes tokens with "alg": "none" alone')
        claims = token.claims()
        user = user_of(claims, self.user_claim)
        expires_ms = time_ms(claims, "exp")
        if "iat" in claims:
            issued_ms = time_ms(claims, "iat")
            if issued_ms > now_ms + self.skew_ms:
                raise InvalidToken('its claim "iat" is in the future')
            if expires_ms <= issued_ms:
                raise InvalidToken('its claim "exp" is not after "iat"')
        if now_ms - self.skew_ms >= expires_ms:
            raise InvalidToken(f"it expired {(now_ms - expires_ms) / 1000:.0f} s ago")
        self._check_scopes(claims.get(self.scope_claim))
        return AcceptedToken(user=user, expires_ms=expires_ms)

    def _check_scopes(self, claim: object) -> None:
        scopes = claim.split() if isinstance(claim, str) else claim if isinstance(claim, list) else []
        missing = [scope for scope in self.required_scopes if scope not in scopes]
        if missing:
            raise InvalidToken(
                f"it lacks the scope {missing[0]!r}",
                status=INSUFFICIENT_SCOPE,
                scope=" ".join(self.required_scopes),
            )


NowMs = Callable[[], float]
"""Returns the time since the epoch in milliseconds."""
