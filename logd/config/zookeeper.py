"""The settings of a broker that is coordinated by ZooKeeper, under the keys of Kafka 3's brokers.

`zookeeper.connect` has it join the cluster that is kept there; without that a broker coordinates itself, and
the others are only checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from logd.config.setting import Allowed, Kind, Setting, at_least, setting, settings_of
from logd.config.settings import Settings

B, S, I, LI, P = Kind.BOOLEAN, Kind.STRING, Kind.INT, Kind.LIST, Kind.PASSWORD  # noqa: E741
_STORE_TYPE = Allowed(check=lambda value: value in ("PEM", "PKCS12", "JKS"), text="one of PEM, PKCS12, JKS")


class ZooKeeperConfig(Settings):
    """As given; `ZooKeeperConfig.of` builds and checks it from Kafka's keys."""

    zookeeper_connect: str | None = setting(
        S,
        None,
        "Join the cluster that is kept in this ensemble: host:port,host:port, and behind it the path "
        "everything is kept under (`/kafka`). Without a value the broker is by itself.",
        nullable=True,
    )
    zookeeper_session_timeout_ms: int = setting(
        I, 18_000, "How long ZooKeeper keeps a session that it does not hear of.", allowed=at_least(1)
    )
    zookeeper_connection_timeout_ms: int | None = setting(
        I,
        None,
        "How long a start waits for ZooKeeper; without a value, as long as a session lasts.",
        nullable=True,
        allowed=Allowed(check=lambda value: value is None or value > 0, text="1 or more"),
    )
    zookeeper_max_in_flight_requests: int = setting(
        I, 10, "Requests to ZooKeeper that may be unanswered at a time.", allowed=at_least(1)
    )
    zookeeper_set_acl: bool = setting(
        B, False, "Let nobody but this identity write what brokers create, and nobody else read secrets."
    )
    millstream_zookeeper_digest: str | None = setting(
        P,
        None,
        "`user:password` of ZooKeeper's digest scheme, as identity. Kafka's brokers log in by SASL instead.",
        nullable=True,
    )
    zookeeper_ssl_client_enable: bool = setting(B, False, "Connect through TLS.")
    zookeeper_ssl_keystore_location: str | None = setting(
        S, None, "The broker's certificate and key, in PEM or PKCS12.", nullable=True
    )
    zookeeper_ssl_keystore_password: str | None = setting(P, None, "Of that store.", nullable=True)
    zookeeper_ssl_keystore_type: str | None = setting(
        S, None, "PEM or PKCS12.", nullable=True, allowed=_STORE_TYPE
    )
    zookeeper_ssl_truststore_location: str | None = setting(
        S, None, "Whom to trust; without it, the system's authorities.", nullable=True
    )
    zookeeper_ssl_truststore_password: str | None = setting(P, None, "Of that store.", nullable=True)
    zookeeper_ssl_truststore_type: str | None = setting(
        S, None, "PEM or PKCS12.", nullable=True, allowed=_STORE_TYPE
    )
    zookeeper_ssl_protocol: str | None = setting(
        S, None, "The newest version of TLS to speak: TLSv1.2 or TLSv1.3.", nullable=True
    )
    zookeeper_ssl_enabled_protocols: tuple[str, ...] | None = setting(
        LI, None, "The versions of TLS to speak.", nullable=True
    )
    zookeeper_ssl_endpoint_identification_algorithm: str = setting(
        S, "HTTPS", "Whether the server's certificate must name its host; empty for no."
    )

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Self:
        """Settings from Kafka's keys as text, others left aside; ConfigError."""
        values: dict[str, Any] = {}
        for key, text in properties.items():
            declared = ZOOKEEPER_SETTINGS.get(key)
            if declared is not None:
                values[declared.field] = declared.parse(text)
        return cls(**values)


ZOOKEEPER_SETTINGS: Mapping[str, Setting] = settings_of(ZooKeeperConfig)
"""By Kafka's key."""
