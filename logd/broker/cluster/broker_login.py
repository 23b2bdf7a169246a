"""The login of the brokers of a cluster to each other, by a secret that they keep in ZooKeeper.

The login is SCRAM-SHA-256 (RFC 7677) on the listener of `inter.broker.listener.name`, if that listener asks
for no other login. Each broker is client and server of the same user. Who can read the secret in ZooKeeper
could as well write there what the controller writes.
"""

from __future__ import annotations

import secrets
from typing import Final

from kafka_client.security.sasl import SaslSettings
from kafka_client.security.secret import Secret
from kafka_client.security.settings import SecuritySettings
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
    """The login on one listener; `listener` is its name in upper case."""

    def __init__(self, secret: str, listener: str) -> None:
        self.listener = listener
        self._secret = secret
        # The secret is random: more iterations would not make it harder to guess.
        self._credential = ScramCredential.of_password(MECHANISM, secret)

    @property
    def mechanism(self) -> str:
        """The mechanism's name in SaslHandshake."""
        return MECHANISM.label

    def client_settings(self) -> SecuritySettings:
        """Return the security settings of connections to other brokers."""
        sasl = SaslSettings(mechanism=MECHANISM.label, username=USER, password=Secret(self._secret))
        return SecuritySettings(protocol="SASL_PLAINTEXT", sasl=sasl)

    def begin(self) -> ServerExchange:
        """Return the server's side of one login."""
        return ScramServerExchange(MECHANISM, lambda user: self._credential if user == USER else None)
