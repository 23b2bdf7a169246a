"""The server side of SASL PLAIN (RFC 4616), as Kafka's PlainSaslServer.

    message   [AUTHZID] NUL USER NUL PASSWORD

The password travels in plain text: the mechanism is for listeners with TLS.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping

from kafka_client.security.secret import Secret
from logd.security.errors import LoginFailed, LoginRefused
from logd.security.exchange import ServerExchange


class PlainServerExchange(ServerExchange):
    """A login by PLAIN. `passwords` are the users' passwords by name."""

    def __init__(self, passwords: Mapping[str, Secret]) -> None:
        self._passwords = passwords
        self.user = ""
        self.expires_ms: int | None = None
        self.is_complete = False

    def respond(self, message: bytes) -> bytes:
        """Return an empty response. Raises LoginFailed, or LoginRefused with a reason to tell."""
        try:
            parts = message.decode().split("\0")
        except UnicodeDecodeError:
            raise LoginFailed("a SASL/PLAIN message that is not UTF-8") from None
        if len(parts) != 3:
            raise LoginFailed(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
        authorization_id, user, password = parts
        if not user or not password:
            missing = "password" if user else "username"
            raise LoginFailed(f"Authentication failed: {missing} not specified")
        right = self._passwords.get(user)
        # Compared for unknown users too, so that the time does not tell which users exist.
        expected = Secret("\0") if right is None else right
        if not hmac.compare_digest(expected.reveal().encode(), password.encode()) or right is None:
            raise LoginRefused("Authentication failed: Invalid username or password")
        if authorization_id not in ("", user):
            raise LoginRefused(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        self.user = user
        self.is_complete = True
        return b""
