"""Users' SCRAM credentials for logins, and decoys for users that do not exist.

An exchange with an unknown user goes on to its end with a decoy: the peer learns from no message, and from no
time, which users exist. A user's decoy has the same salt at each login and on each broker, as a credential
has. So decoys are made from a secret of the cluster, which lasts.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Mapping

from logd.security.errors import LoginFailed
from logd.security.scram_credential import (
    MIN_ITERATIONS,
    BadCredential,
    ScramCredential,
    ScramMechanism,
    salt_of,
)

DECOY_KEY_BYTES = 32


def new_decoy_key() -> bytes:
    """Return a random secret for decoys."""
    return secrets.token_bytes(DECOY_KEY_BYTES)


class ScramUsers:
    """The users of a broker.

    `configs` returns what is stored of a user, by Kafka's keys. `decoy_key` returns the secret of decoys.
    `check_ready` raises an error while the broker does not know the users yet.
    """

    def __init__(
        self,
        configs: Callable[[str], Mapping[str, str]],
        decoy_key: Callable[[], bytes],
        check_ready: Callable[[], None],
    ) -> None:
        self._configs = configs
        self._decoy_key = decoy_key
        self._check_ready = check_ready

    def find(self, mechanism: ScramMechanism, user: str) -> ScramCredential | None:
        """Return a user's credential, or None. Raises LoginFailed if the stored one is damaged."""
        self._check_ready()
        text = self._configs(user).get(mechanism.label)
        if text is None:
            return None
        try:
            return ScramCredential.from_text(text)
        except BadCredential as error:
            raise LoginFailed(f"the stored credential of user {user!r} is damaged: {error}") from None

    def decoy(self, mechanism: ScramMechanism, user: str) -> ScramCredential:
        """Return what takes the place of an unknown user's credential. No password matches it."""
        seed = f"{mechanism.label} {user}".encode()
        secret = hmac.digest(self._decoy_key(), seed, "sha512")
        keys = hmac.digest(secret, b"keys", mechanism.hash_name)
        return ScramCredential(
            salt=salt_of(int.from_bytes(secret, "big")),
            stored_key=keys,
            server_key=keys,
            iterations=MIN_ITERATIONS,
        )
