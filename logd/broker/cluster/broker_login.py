"""The login of the brokers of a cluster to each other, by a secret that they keep in ZooKeeper.

The login is SCRAM-SHA-256 (RFC 7677) on the listener of `inter.broker.listener.name`, if that listener asks
for no other login. Each broker is client and server of the same user. Who can read the secret in ZooKeeper
could as well write there what the controller writes.
"""

from __future__ import annotations

import hmac
import secrets
from typing import Final

from kafka_client.security.sasl import SaslSettings
from kafka_client.security.secret import Secret
from kafka_client.security.settings import SecuritySettings
from logd.broker.cluster.older_brokers import OlderBrokers
from logd.security.exchange import ServerExchange
from logd.security.scram import ScramServerExchange
from logd.security.scram_credential import ScramCredential, ScramMechanism

USER: Final = "millstream-broker"
"""The user of all brokers; users of listeners with SASL are others."""
MECHANISM: Final = ScramMechanism.SHA_256
SECRET_BYTES: Final = 32


def new_secret() -> str:
    """Return a random secret for a new cluster."""
    return secrets.token_urlsafe(SECRET_BYTES)


class BrokerLogin:
    """The login on one listener; `listener` is its name in upper case.

    It is not asked for while `older` has brokers that do not log in; None: there are none.
    """

    def __init__(self, secret: str, listener: str, older: OlderBrokers | None = None) -> None:
        self.listener = listener
        self.older = older
        self._secret = secret
        # The secret is random: more iterations would not make it harder to guess.
        self._credential = ScramCredential.of_password(MECHANISM, secret)
        self.decoy_key = hmac.digest(secret.encode(), b"decoys", "sha256")
        """The secret of `logd.security.scram_users`, the same on all brokers."""

    @property
    def mechanism(self) -> str:
        """The mechanism's name in SaslHandshake."""
        return MECHANISM.label

    def is_required(self, listener: str) -> bool:
        """Return True if a peer on that listener may not send a broker's requests before its login."""
        if listener == self.listener and self.older:
            return False
        self.refresh()
        return True

    def logs_in(self, broker_id: int) -> bool:
        """Return True if this broker logs in to that one; False for a broker of an older release."""
        return self.older is None or broker_id not in self.older

    def refresh(self) -> None:
        """Have ZooKeeper asked for older brokers again: one may have come or gone since the last look."""
        if self.older is not None:
            self.older.refresh()

    def client_settings(self) -> SecuritySettings:
        """Return the security settings of connections to other brokers."""
        sasl = SaslSettings(mechanism=MECHANISM.label, username=USER, password=Secret(self._secret))
        return SecuritySettings(protocol="SASL_PLAINTEXT", sasl=sasl)

    def begin(self) -> ServerExchange:
        """Return the server's side of one login."""
        return ScramServerExchange(MECHANISM, lambda user: self._credential if user == USER else None)
