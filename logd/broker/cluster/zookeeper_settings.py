"""From a broker's `zookeeper.*` keys to how ZooKeeper is reached; the key stores are read here."""

from __future__ import annotations

import ssl
from typing import Final

from kafka_client.errors import ConfigError
from kafka_client.security.context import make_context
from kafka_client.security.keys import SecurityKeys
from kafka_client.security.tls import parse_tls
from logd.config.setting import format_value
from logd.config.zookeeper import ZOOKEEPER_SETTINGS, ZooKeeperConfig
from logd.metadata.zookeeper.session.settings import ZooKeeperSettings

PREFIX: Final = "zookeeper."


def zookeeper_settings(config: ZooKeeperConfig) -> ZooKeeperSettings:
    """Return the settings of the ZooKeeper session. Raises ConfigError. Blocks to read key stores."""
    if config.zookeeper_connect is None:
        raise ConfigError("zookeeper.connect", "", "is needed: host:port,host:port/chroot")
    return ZooKeeperSettings.of(
        config.zookeeper_connect,
        session_timeout_ms=config.zookeeper_session_timeout_ms,
        connection_timeout_ms=config.zookeeper_connection_timeout_ms,
        max_in_flight_requests=config.zookeeper_max_in_flight_requests,
        set_acl=config.zookeeper_set_acl,
        digest=config.millstream_zookeeper_digest or "",
        tls=_context(config) if config.zookeeper_ssl_client_enable else None,
    )


def _context(config: ZooKeeperConfig) -> ssl.SSLContext:
    """Return the TLS context of a client with the same keys, less the prefix."""
    keys = {
        key.removeprefix(PREFIX): format_value(getattr(config, declared.field))
        for key, declared in ZOOKEEPER_SETTINGS.items()
        if key.startswith(PREFIX + "ssl.")
    }
    keys.pop("ssl.client.enable")
    try:
        return make_context(parse_tls(SecurityKeys(keys, PREFIX)))
    except ConfigError as error:
        key = PREFIX + error.key.removeprefix(PREFIX)
        raise ConfigError(key, error.value, error.allowed) from None
