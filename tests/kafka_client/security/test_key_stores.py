"""Trust and key stores in their formats, tried in a handshake in memory."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_client.errors import ConfigError
from kafka_client.security.context import make_context
from kafka_client.security.settings import SecuritySettings
from tests.support.certificates import Authority, Issued
from tests.support.depth import deep

HOST = "broker.example"
PASSWORD = "hunter2"


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority("test CA")


@pytest.fixture(scope="module")
def broker(authority: Authority) -> Issued:
    return authority.issue("broker", [HOST])


@pytest.fixture(scope="module")
def client(authority: Authority) -> Issued:
    return authority.issue("client")


def context(**keys: object) -> ssl.SSLContext:
    properties = {f"ssl.{key.replace('_', '.')}": str(value) for key, value in keys.items()}
    return make_context(SecuritySettings.from_properties({"security.protocol": "SSL", **properties}).tls)


def handshake(client: ssl.SSLContext, server: ssl.SSLContext, host: str = HOST) -> str:
    """Shake hands without a socket; the common name the server sees of the client, or an empty one."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(to_client, to_server, server_hostname=host)
    theirs = server.wrap_bio(to_server, to_client, server_side=True)
    waiting = [ours, theirs]
    while waiting:
        for side in list(waiting):
            try:
                side.do_handshake()
                waiting.remove(side)
            except ssl.SSLWantReadError:
                pass
    names = dict(pair for part in (theirs.getpeercert() or {}).get("subject", ()) for pair in part)
    return str(names.get("commonName", ""))


def refused(**keys: object) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        context(**keys)
    assert PASSWORD not in str(caught.value)
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    return caught.value


def test_a_truststore_in_each_format(tmp_path: Path, authority: Authority, broker: Issued) -> None:
    server = broker.server_context(tmp_path)
    pem = authority.write_pem(tmp_path / "ca.pem")
    p12 = authority.write_pkcs12(tmp_path / "ca.p12", PASSWORD)
    handshake(context(truststore_location=pem, truststore_type="PEM"), server)
    handshake(context(truststore_location=pem), server)
    handshake(
        context(truststore_location=p12, truststore_type="PKCS12", truststore_password=PASSWORD), server
    )
    handshake(context(truststore_location=p12, truststore_password=PASSWORD), server)
    handshake(context(truststore_certificates=authority.pem, truststore_type="PEM"), server)
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(context(), server)


def test_a_truststore_may_hold_the_brokers_own_certificate(tmp_path: Path, broker: Issued) -> None:
    handshake(context(truststore_certificates=broker.certificate_pem), broker.server_context(tmp_path))


def test_the_name_is_checked_unless_told_not_to(tmp_path: Path, authority: Authority, broker: Issued) -> None:
    server = broker.server_context(tmp_path)
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        handshake(context(truststore_certificates=authority.pem), server, "other.example")
    lenient = context(truststore_certificates=authority.pem, endpoint_identification_algorithm="")
    handshake(lenient, server, "other.example")


def test_a_key_store_in_each_format(
    tmp_path: Path, authority: Authority, broker: Issued, client: Issued
) -> None:
    server = broker.server_context(tmp_path, authority.pem)
    trust = {"truststore_certificates": authority.pem}
    pem = client.write_pem(tmp_path / "plain.pem")
    encrypted = client.write_pem(tmp_path / "encrypted.pem", PASSWORD)
    p12 = client.write_pkcs12(tmp_path / "client.p12", PASSWORD)
    inline = {"keystore_certificate_chain": client.chain}
    for keys in (
        {"keystore_location": pem, "keystore_type": "PEM"},
        {"keystore_location": encrypted, "keystore_type": "PEM", "key_password": PASSWORD},
        {"keystore_location": p12, "keystore_type": "PKCS12", "keystore_password": PASSWORD},
        {"keystore_location": p12, "keystore_password": PASSWORD, "key_password": PASSWORD},
        {"keystore_key": client.key_pem(), **inline},
        {"keystore_key": client.key_pem(PASSWORD), "key_password": PASSWORD, **inline},
    ):
        assert handshake(context(**trust, **keys), server) == "client", keys.keys()


def test_stores_that_cannot_be_used(tmp_path: Path, authority: Authority, client: Issued) -> None:
    p12 = client.write_pkcs12(tmp_path / "client.p12", PASSWORD)
    trust12 = authority.write_pkcs12(tmp_path / "ca.p12", PASSWORD)
    encrypted = client.write_pem(tmp_path / "encrypted.pem", PASSWORD)
    ca = authority.write_pem(tmp_path / "ca.pem")
    rubbish = tmp_path / "rubbish"
    rubbish.write_bytes(b"rubbish")
    for keys, key, remedy in (
        ({"keystore_location": tmp_path / "none"}, "keystore.location", "cannot be read: No such file"),
        ({"keystore_location": p12}, "keystore.password", "is needed"),
        ({"keystore_location": p12, "keystore_password": "x"}, "keystore.password", "does not open"),
        (
            {"keystore_location": trust12, "keystore_password": PASSWORD},
            "keystore.location",
            "no private key",
        ),
        ({"keystore_location": p12, "keystore_type": "PEM"}, "keystore.location", "is not in PEM"),
        ({"keystore_location": ca, "keystore_type": "PKCS12"}, "keystore.type", "is a PEM file"),
        ({"keystore_location": ca}, "keystore.location", "private key"),
        ({"keystore_location": encrypted}, "key.password", "is needed"),
        ({"keystore_location": encrypted, "key_password": "x"}, "key.password", "does not decrypt"),
        ({"truststore_location": rubbish, "truststore_password": "x"}, "truststore.password", "not a PKCS12"),
        ({"truststore_certificates": "-----BEGIN CERTIFICATE-----\n!"}, "truststore.certificates", "be read"),
    ):
        error = refused(**keys)
        assert (error.key, remedy in error.allowed) == (f"ssl.{key}", True), (keys, str(error))


@deep
@pytest.mark.skipif(shutil.which("keytool") is None, reason="no keytool")
def test_a_jks_file_is_refused_with_the_command_that_converts_it(
    tmp_path: Path, authority: Authority, broker: Issued
) -> None:
    ca, jks = authority.write_pem(tmp_path / "ca.pem"), tmp_path / "trust.jks"
    secret = ["-storepass", PASSWORD]
    make = ["keytool", "-importcert", "-noprompt", "-alias", "ca", "-file", ca, "-keystore", jks]
    subprocess.run([*make, "-storetype", "JKS", *secret], check=True, capture_output=True, timeout=60)
    error = refused(truststore_location=jks, truststore_password=PASSWORD)
    assert error.key == "ssl.truststore.location"
    command = error.allowed.partition("Convert it: ")[2].partition(";")[0].split()
    passwords = ["-srcstorepass", PASSWORD, "-deststorepass", PASSWORD]
    subprocess.run([*command, *passwords], check=True, capture_output=True, timeout=60)
    converted = jks.with_suffix(".p12")
    trusting = context(truststore_location=converted, truststore_type="PKCS12", truststore_password=PASSWORD)
    handshake(trusting, broker.server_context(tmp_path))


WITHOUT_THE_PACKAGE = """
import asyncio, sys

sys.modules["cryptography"] = None  # as if it were not installed

from kafka_client import Client
from kafka_client.security.settings import SecuritySettings
from kafka_client.errors import MillstreamError

async def connect(**settings):
    security = SecuritySettings.from_properties({"security.protocol": "SSL", **settings})
    try:
        await Client("127.0.0.1:1", security=security, connect_timeout_ms=1).connect()
    except MillstreamError as error:
        print(type(error).__name__, error)

for kind in ("truststore", "keystore"):
    for type_, path in (("PKCS12", sys.argv[1]), ("JKS", sys.argv[1]), ("PEM", sys.argv[2])):
        settings = {"location": path, "type": type_, **({"password": sys.argv[3]} if type_ != "PEM" else {})}
        asyncio.run(connect(**{f"ssl.{kind}.{key}": value for key, value in settings.items()}))
"""


def test_pkcs12_without_its_package_names_the_extra(tmp_path: Path, client: Issued) -> None:
    """PKCS12 stores need `cryptography`; the refusal names the remedy, and other formats work."""
    pkcs12 = client.write_pkcs12(tmp_path / "store.p12", PASSWORD)
    pem = client.write_pem(tmp_path / "store.pem")
    lines_of_both = subprocess.run(
        [sys.executable, "-c", WITHOUT_THE_PACKAGE, pkcs12, pem, PASSWORD],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    for kind, lines in (("truststore", lines_of_both[:3]), ("keystore", lines_of_both[3:])):
        for line in lines[:2]:
            assert line.startswith(f"ConfigError ssl.{kind}.location={pkcs12}: "), line
            assert "pip install 'millstream[security]'" in line and "use PEM" in line
        assert not lines[2].startswith("ConfigError"), lines[2]
    assert len(lines_of_both) == 6
