"""Why a token or a key set cannot be used."""

from __future__ import annotations

from typing import Final

INVALID_TOKEN: Final = "invalid_token"
INSUFFICIENT_SCOPE: Final = "insufficient_scope"


class InvalidToken(Exception):
    """A token that does not log in. `reason` is for the broker's log, and quotes neither token nor claims.

    `status` and `scope` are what the client is told (RFC 7628, 3.2.2).
    """

    def __init__(self, reason: str, *, status: str = INVALID_TOKEN, scope: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status
        self.scope = scope


class BadKeySet(ValueError):
    """A JSON Web Key Set that cannot be read, or has no key that verifies signatures."""
