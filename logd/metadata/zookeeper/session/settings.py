"""The settings of the connection to ZooKeeper; each field is a setting of Kafka's brokers unless noted.

`logd.config` reads them from properties, and the creator of the TLS context loads the key stores.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import Self

from kafka_client.errors import ConfigError

PORT = 2181


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperSettings:
    """The settings of the connection; `of` reads `hosts` and `chroot` from `zookeeper.connect`."""

    hosts: tuple[tuple[str, int], ...]
    chroot: str = ""
    """The chroot: it begins with a slash and does not end with one; empty for none."""
    session_timeout_ms: int = 18_000
    """The requested timeout; the servers may grant another one, between 2 and 20 of their ticks."""
    connection_timeout_ms: int | None = None
    """The longest wait for the first session, in ms; None for `session_timeout_ms`."""
    max_in_flight_requests: int = 10
    set_acl: bool = False
    digest: str = field(default="", repr=False)
    """A setting of logd's: `user:password` of ZooKeeper's digest scheme. Kafka uses SASL (JAAS) instead."""
    tls: ssl.SSLContext | None = field(default=None, repr=False, compare=False)
    """The TLS context of the `zookeeper.ssl.*` settings; None: without TLS."""

    @classmethod
    def of(
        cls,
        connect: str,
        *,
        session_timeout_ms: int = 18_000,
        connection_timeout_ms: int | None = None,
        max_in_flight_requests: int = 10,
        set_acl: bool = False,
        digest: str = "",
        tls: ssl.SSLContext | None = None,
    ) -> Self:
        """Return the settings for a `zookeeper.connect` such as `host:port,host:port/chroot`.

        Raises ConfigError if a setting is invalid.
        """
        hosts, chroot = parse_connect(connect)
        if set_acl and not digest and tls is None:
            # As in Kafka: without an identity, ZooKeeper refuses the ACL "the creator may do all".
            raise ConfigError(
                "zookeeper.set.acl",
                "true",
                "needs an identity: give millstream.zookeeper.digest, or a certificate by zookeeper.ssl.*",
            )
        if digest and (":" not in digest or digest.startswith(":")):
            raise ConfigError("millstream.zookeeper.digest", "[hidden]", "must be user:password")
        return cls(
            hosts=hosts,
            chroot=chroot,
            session_timeout_ms=session_timeout_ms,
            connection_timeout_ms=connection_timeout_ms,
            max_in_flight_requests=max_in_flight_requests,
            set_acl=set_acl,
            digest=digest,
            tls=tls,
        )

    @property
    def connect(self) -> str:
        """The text `host:port,…/chroot`, for messages."""
        return ",".join(_joined(host, port) for host, port in self.hosts) + self.chroot

    @property
    def connection_timeout_s(self) -> float:
        """The longest wait for the first session, in seconds."""
        timeout_ms = self.connection_timeout_ms
        return (self.session_timeout_ms if timeout_ms is None else timeout_ms) / 1000


def parse_connect(connect: str) -> tuple[tuple[tuple[str, int], ...], str]:
    """Return the hosts and the chroot of a `zookeeper.connect`. Raises ConfigError if it is invalid."""
    servers, slash, path = connect.strip().partition("/")
    hosts = tuple(_host(server.strip(), connect) for server in servers.split(",") if server.strip())
    if not hosts:
        raise ConfigError("zookeeper.connect", connect, "must be host:port,host:port/chroot")
    chroot = slash + path.rstrip("/") if path.strip("/") else ""
    if any(part in ("", ".", "..") for part in chroot.split("/")[1:]):
        raise ConfigError("zookeeper.connect", connect, "its chroot has an empty part, '.' or '..'")
    return hosts, chroot


def _host(server: str, connect: str) -> tuple[str, int]:
    if server.startswith("["):
        host, _, port = server[1:].partition("]")
        port = port.removeprefix(":")
    else:
        host, _, port = server.partition(":")
    if not host or (port and not (port.isdecimal() and 0 < int(port) < 65536)):
        raise ConfigError("zookeeper.connect", connect, f"{server!r} must be host:port")
    return host, int(port) if port else PORT


def _joined(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
