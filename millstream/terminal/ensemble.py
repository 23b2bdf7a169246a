"""ZooKeeper as commands use it: `--zookeeper`, its settings, and the registered brokers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from millstream.terminal.status import NotAllowed, NotFound, Unreachable

if TYPE_CHECKING:
    from logd.metadata.zookeeper.session.session import Session as ZooKeeper
    from logd.metadata.zookeeper.znodes.znodes import Endpoint
    from millstream.terminal.servers import Servers

CONNECT = "zookeeper.connect"
PATIENCE = {"zookeeper.connection.timeout.ms": "5000"}
"""The connection timeout: short, as for brokers, since a user waits."""
SECURITY_PROTOCOL = "security.protocol"

SomeZooKeeper = Annotated[
    str | None,
    typer.Option(
        "--zookeeper",
        metavar="HOST:PORT[,HOST:PORT][/CHROOT]",
        help="Groups of consumers before Kafka 0.9, which are kept there.",
    ),
]
TheZooKeeper = Annotated[
    str,
    typer.Option(
        "--zookeeper", metavar="HOST:PORT[,HOST:PORT][/CHROOT]", help="Where the group's offsets are."
    ),
]
ZooKeeperConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--zk-tls-config-file",
        metavar="FILE",
        help="zookeeper.* settings, as of a broker: zookeeper.ssl.*, millstream.zookeeper.digest.",
    ),
]


@asynccontextmanager
async def zookeeper(connect: str, file: Path | None) -> AsyncIterator[ZooKeeper]:
    """Open a session and close it at the end.

    Raises ConfigError, NotAllowed, or NotFound without the chroot, which is not created. Raises Unreachable,
    also if the connection is lost later.
    """
    from kafka_client.java_properties import read_properties
    from logd.broker.cluster.zookeeper_settings import zookeeper_settings
    from logd.config.zookeeper import ZooKeeperConfig
    from logd.metadata.zookeeper import errors
    from logd.metadata.zookeeper.session.session import Session

    properties = {} if file is None else read_properties(file, "--zk-tls-config-file")
    settings = zookeeper_settings(ZooKeeperConfig.of({**PATIENCE, **properties, CONNECT: connect}))
    try:
        patient = Session(settings, patience_s=settings.connection_timeout_s)
        session = await patient.open(create_chroot=False)
        try:
            if await session.exists("/") is None:
                raise NotFound(f"ZooKeeper at {settings.connect}: there is no path {settings.chroot}")
            yield session
        finally:
            await session.close()
    except (errors.Unreachable, errors.ConnectionLost) as error:
        raise Unreachable(str(error)) from error
    except errors.NotAllowed as error:
        raise NotAllowed(f"{error} (--zk-tls-config-file)") from error


async def registered(session: ZooKeeper, servers: Servers) -> Servers:
    """Return the named brokers; without them those registered in ZooKeeper.

    The registered brokers are those with a listener of the client's `security.protocol`.
    """
    if servers.is_named:
        return servers
    protocol = servers.properties.get(SECURITY_PROTOCOL, "PLAINTEXT").upper()
    addresses = [
        f"[{endpoint.host}]:{endpoint.port}" if ":" in endpoint.host else f"{endpoint.host}:{endpoint.port}"
        for endpoint in await _endpoints(session)
        if endpoint.security_protocol == protocol
    ]
    return replace(servers, bootstrap=",".join(addresses), is_named=True) if addresses else servers


async def _endpoints(session: ZooKeeper) -> list[Endpoint]:
    """Return the endpoints of all brokers, without registrations that cannot be read."""
    from logd.metadata.zookeeper.errors import BadZnode
    from logd.metadata.zookeeper.znodes import paths, znodes

    ids = [name for name in await session.find_children(paths.BROKER_IDS) if name.isdecimal()]
    values = await session.find_all([f"{paths.BROKER_IDS}/{name}" for name in ids])
    endpoints: list[Endpoint] = []
    for name, value in zip(ids, values, strict=True):
        if value is not None:
            with suppress(BadZnode):
                endpoints += znodes.decode_registration(int(name), value[0]).endpoints
    return endpoints
