"""The login of the brokers of a cluster to each other, on the listener of `inter.broker.listener.name`.

If that listener asks for no login of its own, brokers log in by SCRAM-SHA-256 (RFC 7677), with or without
TLS. The password is a secret that they keep in ZooKeeper. Who can read it there could as well write there
what the controller writes. If the listener asks for a login, brokers use that one: with the secret, or with
the account that `sasl.mechanism.inter.broker.protocol` chooses. Each broker is client and server of the same
account.
"""

from __future__ import annotations

import hmac
import secrets
from functools import cached_property
from typing import TYPE_CHECKING, Final

from kafka_client.security.sasl import SaslSettings
from kafka_client.security.secret import Secret
from kafka_client.security.settings import SecuritySettings
from kafka_client.security.tls import TlsSettings
from logd.broker.cluster.older_brokers import OlderBrokers
from logd.security.broker_account import (
    DEFAULT_MECHANISM,
    BrokerAccount,
    configured_account,
    tls_between_brokers,
)
from logd.security.exchange import ServerExchange
from logd.security.scram import ScramServerExchange
from logd.security.scram_credential import BY_LABEL, ScramCredential

if TYPE_CHECKING:
    from collections.abc import Mapping

USER: Final = "millstream-broker"
"""The user of all brokers with the secret; users of listeners with SASL are others."""
SECRET_BYTES: Final = 32


def new_secret() -> str:
    """Return a random secret for a new cluster."""
    return secrets.token_urlsafe(SECRET_BYTES)


class BrokerLogin:
    """The login on one listener; `listener` is its name in upper case, `protocol` its security protocol.

    It is not asked for while `older` has brokers that do not log in; None: there are none. `account` is that
    of the settings, None for the secret. `tls` is how this broker connects to a listener with TLS.
    """

    def __init__(
        self,
        secret: str,
        listener: str,
        older: OlderBrokers | None = None,
        *,
        protocol: str = "PLAINTEXT",
        account: BrokerAccount | None = None,
        tls: TlsSettings | None = None,
    ) -> None:
        self.listener = listener
        # Brokers of an older release have no secured listener between brokers.
        self.older = older if protocol == "PLAINTEXT" else None
        self.is_inner = not protocol.startswith("SASL_")
        """True if the listener asks for no login of its own, so that the handlers of SASL serve brokers."""
        self.account = account or BrokerAccount(
            mechanism=DEFAULT_MECHANISM, user=USER, password=Secret(secret)
        )
        self._protocol = protocol
        self._tls = tls or TlsSettings()
        self.decoy_key = hmac.digest(secret.encode(), b"decoys", "sha256")
        """The secret of `logd.security.scram_users`, the same on all brokers."""

    @classmethod
    def configured(
        cls,
        secret: str,
        listener: str,
        older: OlderBrokers | None,
        *,
        properties: Mapping[str, str],
        protocol: str,
        mechanism: str | None,
    ) -> BrokerLogin:
        """Return the login by a broker's settings. Raises ConfigError."""
        return cls(
            secret,
            listener,
            older,
            protocol=protocol,
            account=configured_account(properties, listener, protocol, mechanism),
            tls=tls_between_brokers(properties, listener) if protocol.endswith("SSL") else None,
        )

    @property
    def mechanism(self) -> str:
        """The mechanism's name in SaslHandshake."""
        return self.account.mechanism

    @cached_property
    def credential(self) -> ScramCredential:
        """The credential of the account, if its mechanism is SCRAM."""
        return ScramCredential.of_password(BY_LABEL[self.mechanism], self.account.password.reveal())

    def is_required(self, listener: str) -> bool:
        """Return True if a peer on that listener may not send a broker's requests before its login."""
        if listener == self.listener and self.older:
            return False
        self.refresh()
        return True

    def is_login_of_broker(self, listener: str, mechanism: str, user: str) -> bool:
        """Return True if a login that succeeded on a listener is that of a broker."""
        account = self.account
        return (listener, mechanism, user) == (self.listener, account.mechanism, account.user)

    def logs_in(self, broker_id: int) -> bool:
        """Return True if this broker logs in to that one; False for a broker of an older release."""
        return self.older is None or broker_id not in self.older

    def refresh(self) -> None:
        """Have ZooKeeper asked for older brokers again: one may have come or gone since the last look."""
        if self.older is not None:
            self.older.refresh()

    def client_settings(self) -> SecuritySettings:
        """Return the security settings of connections to other brokers."""
        account = self.account
        sasl = SaslSettings(mechanism=account.mechanism, username=account.user, password=account.password)
        if self._protocol.endswith("SSL"):
            return SecuritySettings(protocol="SASL_SSL", sasl=sasl, tls=self._tls)
        return SecuritySettings(protocol="SASL_PLAINTEXT", sasl=sasl)

    def begin(self) -> ServerExchange:
        """Return the server's side of one login, on a listener that asks for no login of its own."""
        return ScramServerExchange(
            BY_LABEL[self.mechanism], lambda user: self.credential if user == self.account.user else None
        )
