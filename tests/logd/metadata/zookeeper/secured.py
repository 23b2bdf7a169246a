"""A ZooKeeper that is reached by TLS with certificates of a test's authority, and at another port without."""

from __future__ import annotations

import shutil
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

from millstream.zookeeper.ensemble import TICK_MS, Ensemble
from tests.support.certificates import Authority
from tests.support.ports import free_port

PASSWORD = "changeit"


class Secured(NamedTuple):
    """`plain` and `secure` are its two addresses."""

    plain: str
    secure: str
    authority: Authority
    folder: Path

    @property
    def trust(self) -> Path:
        """Whom to trust, in PEM."""
        return self.folder / "trust.pem"

    def certificate(self, name: str) -> Path:
        """Return the path of a PEM file with a client's key and certificate of that name."""
        return self.authority.issue(name).write_pem(self.folder / f"{name}.pem")

    def context(self, name: str = "broker", authority: Authority | None = None) -> ssl.SSLContext:
        """Return the context of a client of that name, which trusts the authority."""
        made = ssl.create_default_context(cadata=(authority or self.authority).pem)
        made.load_cert_chain(self.certificate(name))
        return made


@contextmanager
def secured_zookeeper(folder: Path, tick_ms: int = TICK_MS) -> Iterator[Secured]:
    """Run one server with TLS. Skips without Java or PySpark's jars."""
    if shutil.which("java") is None or find_spec("pyspark") is None:
        pytest.skip("ZooKeeper needs Java and PySpark's jars")
    authority = Authority("ZooKeeper's CA")
    # Java finds no trust in a PKCS12 file without its own attribute.
    authority.write_pem(folder / "trust.pem")
    authority.issue("server", ["127.0.0.1"]).write_pkcs12(folder / "server.p12", PASSWORD)
    ensemble = Ensemble(folder / "ensemble", tick_ms=tick_ms)
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
