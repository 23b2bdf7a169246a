"""The settings of the connection to ZooKeeper, by the keys of Kafka 3's brokers.

A broker with `zookeeper.connect` joins the cluster in that ensemble. A standalone broker only checks the
other settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from logd.config.setting import Allowed, Kind, Setting, at_least, setting, settings_of
from logd.config.settings import Settings

B, S, I, LI, P = Kind.BOOLEAN, Kind.STRING, Kind.INT, Kind.LIST, Kind.PASSWORD  # noqa: E741
_STORE_TYPE = Allowed(check=lambda value: value in ("PEM", "PKCS12", "JKS"), text="one of PEM, PKCS12, JKS")


class ZooKeeperConfig(Settings):
    """A broker's settings for ZooKeeper; ``ZooKeeperConfig.of`` builds and checks them from Kafka's keys."""

    zookeeper_connect: str | None = setting(
        S,
        None,
        "Join the cluster in this ensemble: host:port,host:port, followed by the path of the cluster's "
        "znodes (`/kafka`). Without a value the broker is standalone.",
        nullable=True,
    )
    zookeeper_session_timeout_ms: int = setting(
        I, 18_000, "How long ZooKeeper keeps a session without heartbeats.", allowed=at_least(1)
    )
    zookeeper_connection_timeout_ms: int | None = setting(
        I,
        None,
        "How long a start waits for ZooKeeper. Default: zookeeper.session.timeout.ms.",
        nullable=True,
        allowed=Allowed(check=lambda value: value is None or value > 0, text="1 or more"),
    )
    zookeeper_max_in_flight_requests: int = setting(
        I, 10, "Most unanswered requests to ZooKeeper.", allowed=at_least(1)
    )
    zookeeper_set_acl: bool = setting(
        B, False, "Create znodes with ACLs: only this identity may write them, and read those with secrets."
    )
    millstream_zookeeper_digest: str | None = setting(
        P,
        None,
        "The broker's identity, `user:password` of ZooKeeper's digest scheme. Kafka's brokers use SASL "
        "instead.",
        nullable=True,
    )
    zookeeper_ssl_client_enable: bool = setting(B, False, "Connect through TLS.")
    zookeeper_ssl_keystore_location: str | None = setting(
        S, None, "The broker's certificate and key, in PEM or PKCS12.", nullable=True
    )
    zookeeper_ssl_keystore_password: str | None = setting(
        P, None, "The password of zookeeper.ssl.keystore.location.", nullable=True
    )
    zookeeper_ssl_keystore_type: str | None = setting(
        S, None, "PEM or PKCS12.", nullable=True, allowed=_STORE_TYPE
    )
    zookeeper_ssl_truststore_location: str | None = setting(
        S, None, "The trusted certificate authorities. Default: the system's.", nullable=True
    )
    zookeeper_ssl_truststore_password: str | None = setting(
        P, None, "The password of zookeeper.ssl.truststore.location.", nullable=True
    )
    zookeeper_ssl_truststore_type: str | None = setting(
        S, None, "PEM or PKCS12.", nullable=True, allowed=_STORE_TYPE
    )
    zookeeper_ssl_protocol: str | None = setting(
        S, None, "The newest TLS version to use: TLSv1.2 or TLSv1.3.", nullable=True
    )
    zookeeper_ssl_enabled_protocols: tuple[str, ...] | None = setting(
        LI, None, "The TLS versions to use.", nullable=True
    )
    zookeeper_ssl_endpoint_identification_algorithm: str = setting(
        S, "HTTPS", "HTTPS: the server's certificate must name its host. Empty: it is not checked."
    )

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Self:
        """Return the settings in ``properties`` (Kafka's keys, values as text); other keys are ignored.

        Raises ConfigError for a value that is not allowed.
        """
        values: dict[str, Any] = {}
        for key, text in properties.items():
            declared = ZOOKEEPER_SETTINGS.get(key)
            if declared is not None:
                values[declared.field] = declared.parse(text)
        return cls(**values)


ZOOKEEPER_SETTINGS: Mapping[str, Setting] = settings_of(ZooKeeperConfig)
"""Settings by Kafka's key."""
