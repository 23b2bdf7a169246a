"""JSON Web Tokens in their compact form (RFC 7519, RFC 7515).

token     HEADER.PAYLOAD.SIGNATURE      each in base64url, without padding
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from logd.security.oauthbearer.errors import InvalidToken

TOKEN_BYTES_MAX: Final = 65_536
"""Longest token that is read. One with the groups of its user has some kilobytes."""
_BASE64URL: Final = re.compile(r"[A-Za-z0-9_-]*")
_HEADER_CHARACTERS_MAX: Final = 16_384


@dataclass(frozen=True, slots=True)
class JsonWebToken:
    """A token in parts. Its payload is not parsed before the signature has been verified."""

    header: Mapping[str, Any]
    signed: bytes = field(repr=False)
    """The bytes that the signature is of."""
    signature: bytes = field(repr=False)
    _payload: str = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> JsonWebToken:
        """Return the parts of a token. Raises InvalidToken if it is no JSON Web Token."""
        if len(text) > TOKEN_BYTES_MAX:
            raise InvalidToken(f"it has {len(text)} bytes; {TOKEN_BYTES_MAX} are allowed")
        parts = text.split(".")
        if len(parts) != 3 or not parts[0] or not parts[1]:
            raise InvalidToken("it is no JSON Web Token of three parts")
        if len(parts[0]) > _HEADER_CHARACTERS_MAX:
            raise InvalidToken("its header is too long")
        header = _object(parts[0], "header")
        if "crit" in header:
            raise InvalidToken('its header has "crit": extensions are not understood')
        signed = f"{parts[0]}.{parts[1]}".encode()
        return cls(header, signed, _bytes(parts[2], "signature"), parts[1])

    @property
    def algorithm(self) -> str:
        """The algorithm of the signature; empty without one."""
        value = self.header.get("alg")
        return value if isinstance(value, str) else ""

    @property
    def key_id(self) -> str | None:
        """The id of the key that the token is signed with, if the token names one."""
        value = self.header.get("kid")
        return value if isinstance(value, str) else None

    def claims(self) -> Mapping[str, Any]:
        """Return the payload's claims. Raises InvalidToken if they cannot be read."""
        return _object(self._payload, "payload")


def _object(part: str, name: str) -> Mapping[str, Any]:
    try:
        value = json.loads(_bytes(part, name))
    except (ValueError, RecursionError):
        raise InvalidToken(f"its {name} is not JSON") from None
    if not isinstance(value, dict):
        raise InvalidToken(f"its {name} is no JSON object")
    return value


def _bytes(part: str, name: str) -> bytes:
    if not _BASE64URL.fullmatch(part):
        raise InvalidToken(f"its {name} is not in base64url")
    try:
        return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except binascii.Error:
        raise InvalidToken(f"its {name} is not in base64url") from None
