"""Why a peer may not log in.

MillstreamError
└── LoginFailed        the login failed; the peer is told only that it did
    └── LoginRefused   the login failed for a reason that the peer may read
"""

from __future__ import annotations

from kafka_client.errors import MillstreamError


class LoginFailed(MillstreamError):
    """A failed login. `reason` is for the broker's log, since it may say whether a user exists.

    It never quotes what the peer sent as a secret. Kafka's SaslException.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


class LoginRefused(LoginFailed):
    """A failed login whose `reason` is sent to the peer too. Kafka's SaslAuthenticationException.

    `detail` is for the log, where the peer is told less.
    """

    def __init__(self, reason: str, *, detail: str = "") -> None:
        super().__init__(reason)
        self.detail = detail

    def __str__(self) -> str:
        return self.detail or self.reason
