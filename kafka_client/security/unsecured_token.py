"""OAuth tokens without a signature, for development (Kafka's OAuthBearerUnsecuredLoginCallbackHandler).

    unsecuredLoginStringClaim_NAME="TEXT"         a claim
    unsecuredLoginNumberClaim_NAME="NUMBER"
    unsecuredLoginListClaim_NAME="|ONE|TWO"       the first character separates the others
    unsecuredLoginPrincipalClaimName="sub"        the claim with the user's name
    unsecuredLoginScopeClaimName="scope"
    unsecuredLoginLifetimeSeconds="3600"
    unsecuredLoginExtension_NAME="TEXT"           a SASL extension (KIP-342)

The options are those of `OAuthBearerLoginModule` in `sasl.jaas.config`.
"""

from __future__ import annotations

import base64
import json
import math
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kafka_client.security.secret import Secret
from kafka_client.security.token import Token

PREFIX: Final = "unsecuredLogin"
_CLAIM: Final = re.compile(rf"{PREFIX}(?P<kind>String|Number|List)Claim_(?P<name>.+)")
_EXTENSION: Final = re.compile(rf"{PREFIX}Extension_(?P<name>[A-Za-z]+)")
_RESERVED: Final = ("iat", "exp")
_LIFETIME: Final = f"{PREFIX}LifetimeSeconds"
_OTHERS: Final = (_LIFETIME, f"{PREFIX}PrincipalClaimName", f"{PREFIX}ScopeClaimName")


class BadOption(ValueError):
    """An option that cannot be used; the text names it, and says what is allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsecuredTokens:
    """A token source: tokens that anybody can make, for brokers that take such tokens."""

    claims: Mapping[str, Any]
    lifetime_s: float = 3600
    extensions: tuple[tuple[str, str], ...] = ()
    """SASL extensions that are sent with each token."""
    clock: Callable[[], float] = field(default=time.time, repr=False, compare=False)

    def __call__(self) -> Token:
        """Return a new token."""
        now = self.clock()
        claims = {"iat": now, "exp": now + self.lifetime_s, **self.claims}
        text = ".".join((_part({"alg": "none"}), _part(claims), ""))
        return Token(value=Secret(text), expires_at=now + self.lifetime_s, extensions=dict(self.extensions))


def unsecured_tokens(options: Mapping[str, str]) -> UnsecuredTokens:
    """Return the source that the options of a login module describe. Raises BadOption."""
    claims: dict[str, Any] = {}
    extensions: list[tuple[str, str]] = []
    for option, value in options.items():
        if match := _CLAIM.fullmatch(option):
            if match["name"] in _RESERVED:
                raise BadOption(f"{option}: the claim is set by {_LIFETIME}")
            claims[match["name"]] = _claim(option, match["kind"], value)
        elif match := _EXTENSION.fullmatch(option):
            extensions.append((match["name"], value))
        elif option not in _OTHERS:
            raise BadOption(f"{option} is no option of unsecured tokens")
    principal = options.get(f"{PREFIX}PrincipalClaimName") or "sub"
    if not isinstance(claims.get(principal), str) or not claims[principal]:
        raise BadOption(f"{PREFIX}StringClaim_{principal} is needed: the user's name")
    return UnsecuredTokens(
        claims=claims,
        lifetime_s=_number(_LIFETIME, options.get(_LIFETIME) or "3600"),
        extensions=tuple(extensions),
    )


def _claim(option: str, kind: str, value: str) -> Any:
    if kind == "String":
        return value
    if kind == "Number":
        return _number(option, value)
    return value[1:].split(value[0]) if value else []


def _number(option: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise BadOption(f"{option} must be a number")
    return int(number) if number.is_integer() else number


def _part(value: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")
