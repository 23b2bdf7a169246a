"""Certificates that are replaced while a broker runs: new connections get them, unless they are broken."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest
from cryptography import x509

from kafka_client import Admin, Client
from kafka_client.admin.configs import ResourceType
from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.security.settings import SecuritySettings
from logd.server import tls_reload
from tests.logd.server.test_secured_listeners import CA, Running, client_keys, settings

LOCATION = "listener.name.out.ssl.keystore.location"


def name_of_broker(address: str, folder: Path) -> str:
    """Return the common name in the certificate that a new connection gets."""
    host, _, port = address.rpartition(":")
    text = ssl.get_server_certificate((host, int(port)), ca_certs=str(folder / "ca.pem"))
    return x509.load_pem_x509_certificate(text.encode()).subject.rfc4514_string()


async def until_named(address: str, folder: Path, name: str) -> None:
    async with asyncio.timeout(60):
        while await asyncio.to_thread(name_of_broker, address, folder) != f"CN={name}":  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def until_logged(caplog: pytest.LogCaptureFixture, text: str) -> None:
    async with asyncio.timeout(60):
        while text not in caplog.text:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls_reload, "LOOK_MS", 10.0)


async def test_files_are_replaced(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with Running(settings(tmp_path, "SSL")) as address:
        security = SecuritySettings.from_properties(client_keys(tmp_path, "SSL"))
        async with Client(address, security=security) as client:
            await client.metadata()
            await until_named(address, tmp_path, "broker")
            CA.issue("second", ["127.0.0.1"]).write_pem(tmp_path / "broker.pem")
            await until_named(address, tmp_path, "second")
            (tmp_path / "broker.pem").write_text("no certificate")
            await until_logged(caplog, "the last ones stay in force: ssl.keystore.location=")
            assert await asyncio.to_thread(name_of_broker, address, tmp_path) == "CN=second"
            (tmp_path / "broker.pem").unlink()
            await until_logged(caplog, "cannot be read: No such file or directory")
            CA.issue("third", ["127.0.0.1"]).write_pem(tmp_path / "broker.pem")
            await until_named(address, tmp_path, "third")
            await client.metadata()


async def test_the_setting_is_altered(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with Running(settings(tmp_path, "SSL")) as address:
        security = SecuritySettings.from_properties(client_keys(tmp_path, "SSL"))
        async with Client(address, security=security) as client:
            admin = Admin(client)

            async def alter(value: str | None, broker: str = "1", key: str = LOCATION) -> None:
                await admin.incremental_alter_configs(broker, {key: value}, ResourceType.BROKER)

            CA.issue("other", ["127.0.0.1"]).write_pem(tmp_path / "other.pem")
            await alter(str(tmp_path / "other.pem"))
            await until_named(address, tmp_path, "other")
            await alter(str(tmp_path / "missing.pem"))
            await until_logged(caplog, "cannot be read: No such file or directory")
            assert await asyncio.to_thread(name_of_broker, address, tmp_path) == "CN=other"
            await alter(None)
            await until_named(address, tmp_path, "broker")
            for broker, key in (("", LOCATION), ("1", "listener.name.out.ssl.keystore.password")):
                with pytest.raises(KafkaError) as caught:
                    await alter("x", broker, key)
                assert caught.value.code == ErrorCode.INVALID_REQUEST
