"""Sessions through TLS, with a server that asks for a certificate."""

from __future__ import annotations

import asyncio
import shutil
import ssl
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

from logd.metadata.zookeeper.errors import NotAllowed, Unreachable
from logd.metadata.zookeeper.session import Session
from logd.metadata.zookeeper.settings import ZooKeeperSettings
from millstream.zookeeper.ensemble import Ensemble
from tests.logd.metadata.zookeeper.sessions import opened
from tests.support.certificates import Authority
from tests.support.depth import deep
from tests.support.ports import free_port

PASSWORD = "changeit"
pytestmark = deep


class Secured(NamedTuple):
    plain: str
    secure: str
    authority: Authority
    folder: Path


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    if shutil.which("java") is None or find_spec("pyspark") is None:
        pytest.skip("ZooKeeper needs Java and PySpark's jars")
    folder = tmp_path_factory.mktemp("tls")
    authority = Authority("ZooKeeper's CA")
    # Java finds no trust in a PKCS12 file without its own attribute.
    authority.write_pem(folder / "trust.pem")
    authority.issue("server", ["127.0.0.1"]).write_pkcs12(folder / "server.p12", PASSWORD)
    ensemble = Ensemble(folder / "ensemble")
    port = free_port()
    with (ensemble.servers[0].folder / "zoo.cfg").open("a") as file:
        file.write(
            f"secureClientPort={port}\n"
            "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n"
            "authProvider.x509=org.apache.zookeeper.server.auth.X509AuthenticationProvider\n"
            f"ssl.keyStore.location={folder}/server.p12\nssl.keyStore.password={PASSWORD}\n"
            f"ssl.trustStore.location={folder}/trust.pem\n"
        )
    with ensemble:
        yield Secured(ensemble.connect_string, f"127.0.0.1:{port}", authority, folder)


def context(secured: Secured, name: str = "broker", authority: Authority | None = None) -> ssl.SSLContext:
    made = ssl.create_default_context(cadata=(authority or secured.authority).pem)
    made.load_cert_chain(secured.authority.issue(name).write_pem(secured.folder / f"{name}.pem"))
    return made


def test_through_tls(secured: Secured) -> None:
    async def main() -> None:
        async with opened(secured.secure + "/k", tls=context(secured), max_in_flight_requests=100) as session:
            await session.create("/x", b"1" * 5000)
            # Many answers in one record of TLS: none may wait for the next thing that comes.
            async with asyncio.timeout(session.settings.session_timeout_ms / 1000 / 3):
                found = await session.find_all(["/x"] * 2000)
            assert all(each is not None and len(each[0]) == 5000 for each in found)

    asyncio.run(main())


def test_a_certificate_is_an_identity(secured: Secured) -> None:
    async def main() -> None:
        async with (
            opened(secured.secure + "/acl", tls=context(secured), set_acl=True) as ours,
            opened(secured.plain + "/acl") as other,
        ):
            await ours.ensure(["/config/users/u", "/brokers"])
            assert await other.get("/brokers")
            with pytest.raises(NotAllowed):
                await other.set("/brokers", b"x")
            with pytest.raises(NotAllowed):
                await other.get("/config/users")

    asyncio.run(main())


def test_a_server_that_is_not_trusted(secured: Secured) -> None:
    async def main() -> None:
        other = context(secured, authority=Authority("another CA"))
        # It is tried again until then; a handshake takes a busy machine longer than a second.
        settings = ZooKeeperSettings.of(secured.secure, tls=other, connection_timeout_ms=10_000)
        with pytest.raises(Unreachable, match="certificate verify failed"):
            await Session(settings).open()

    asyncio.run(main())
