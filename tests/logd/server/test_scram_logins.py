"""Users that log in by SCRAM on a standalone broker: set over the network, stored, changed and deleted."""

from __future__ import annotations

import asyncio
import logging
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kafka_client import Admin, Client
from kafka_client.errors import AuthenticationFailed, ConfigError, ErrorCode, KafkaError
from kafka_client.security.settings import SecuritySettings
from logd.broker_server import BrokerServer
from logd.config.load import from_properties
from logd.metadata.journal_store import FILE_NAME
from tests.support.certificates import Authority
from tests.support.java import needs_kafka, run_tool

CA = Authority("test CA")
PASSWORD, OTHER_PASSWORD = "s3cret-of-alice", "n3w-one-of-alice"
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
FAILURE = "Authentication failed during authentication due to invalid credentials with SASL mechanism {}"


def settings(folder: Path, **more: str) -> dict[str, str]:
    CA.issue("broker", ["127.0.0.1"]).write_pem(folder / "broker.pem")
    CA.write_pem(folder / "ca.pem")
    return {
        "listeners": "ADMIN://127.0.0.1:0,OPEN://127.0.0.1:0,SECURE://127.0.0.1:0",
        "listener.security.protocol.map": "ADMIN:PLAINTEXT,OPEN:SASL_PLAINTEXT,SECURE:SASL_SSL",
        "log.dirs": str(folder / "logs"),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "broker.pem"),
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "connection.failed.authentication.delay.ms": "1",
        **more,
    }


class Addresses:
    def __init__(self, server: BrokerServer) -> None:
        self.broker = server.broker
        self.admin, self.open, self.secure = map(str, server.broker.endpoints)


@asynccontextmanager
async def running(folder: Path, **more: str) -> AsyncIterator[Addresses]:
    server = BrokerServer(from_properties(settings(folder, **more)).config)
    await server.start()
    try:
        yield Addresses(server)
    finally:
        await server.stop()


@asynccontextmanager
async def admin_at(address: str) -> AsyncIterator[Admin]:
    async with Client(address) as client:
        yield Admin(client)


def keys(mechanism: str, password: str = PASSWORD, user: str = "alice", **more: str) -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": password,
        **more,
    }


async def log_in(address: str, properties: Mapping[str, str]) -> None:
    async with Client(address, security=SecuritySettings.from_properties(dict(properties))) as client:
        await client.metadata()


def tls_keys(folder: Path) -> dict[str, str]:
    return {
        "security.protocol": "SASL_SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "ca.pem"),
    }


async def test_a_users_life(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with running(tmp_path) as at, admin_at(at.admin) as admin:
        for mechanism in MECHANISMS:
            await admin.set_scram_credential("alice", mechanism, PASSWORD)
            await log_in(at.open, keys(mechanism))
            await log_in(at.secure, keys(mechanism) | tls_keys(tmp_path))
        assert await admin.describe_scram_credentials() == {"alice": dict.fromkeys(MECHANISMS, 4096)}
    stored = (tmp_path / "logs" / FILE_NAME).read_text()
    async with running(tmp_path) as at, admin_at(at.admin) as admin:
        await log_in(at.open, keys(MECHANISMS[0]))
        await admin.set_scram_credential("alice", MECHANISMS[0], OTHER_PASSWORD, iterations=8192)
        await log_in(at.open, keys(MECHANISMS[0], OTHER_PASSWORD))
        for user, password in (("alice", PASSWORD), ("bob", PASSWORD)):
            with pytest.raises(AuthenticationFailed, match=FAILURE.format(MECHANISMS[0])):
                await log_in(at.open, keys(MECHANISMS[0], password, user))
        await admin.delete_scram_credential("alice", MECHANISMS[0])
        with pytest.raises(AuthenticationFailed, match=FAILURE.format(MECHANISMS[0])):
            await log_in(at.open, keys(MECHANISMS[0], OTHER_PASSWORD))
        await log_in(at.open, keys(MECHANISMS[1]))
        with pytest.raises(KafkaError, match="does not exist") as missing:
            await admin.delete_scram_credential("alice", MECHANISMS[0])
        assert missing.value.code is ErrorCode.RESOURCE_NOT_FOUND
        with pytest.raises(KafkaError, match="Too few iterations"):
            await admin.set_scram_credential("alice", MECHANISMS[0], PASSWORD, iterations=1)
    assert PASSWORD not in stored + caplog.text and OTHER_PASSWORD not in stored + caplog.text
    assert "stored_key" in stored and "stored_key" not in caplog.text


async def test_kcat_logs_in_and_a_stranger_does_not(tmp_path: Path) -> None:
    async with running(tmp_path) as at, admin_at(at.admin) as admin:
        await admin.set_scram_credential("alice", MECHANISMS[1], PASSWORD)

        def kcat(password: str, seconds: int) -> subprocess.CompletedProcess[str]:
            options = [f"-X{key}={value}" for key, value in keys(MECHANISMS[1], password).items()]
            command = ["kcat", "-b", at.open, *options, "-L", "-m", str(seconds)]
            return subprocess.run(command, capture_output=True, text=True, timeout=240)

        right, wrong = await asyncio.to_thread(kcat, PASSWORD, 60), await asyncio.to_thread(kcat, "wrong", 5)
    assert "1 brokers" in right.stdout
    assert FAILURE.format(MECHANISMS[1]) in wrong.stderr


@needs_kafka
async def test_kafka_configs_logs_in_and_sets_users(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\n"
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required "
        f'username="alice" password="{PASSWORD}";\n'
    )
    async with running(tmp_path) as at, admin_at(at.admin) as admin:
        await admin.set_scram_credential("alice", MECHANISMS[0], PASSWORD)

        async def tool(*arguments: str) -> str:
            entity = ("--bootstrap-server", at.open, "--command-config", str(file), "--entity-type", "users")
            main = "org.apache.kafka.tools.ConfigCommand"
            done = await asyncio.to_thread(run_tool, main, *entity, *arguments)
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout

        added = "SCRAM-SHA-512=[iterations=8192,password=b0b]"
        await tool("--entity-name", "bob", "--alter", "--add-config", added)
        assert (await tool("--describe")).splitlines() == [
            "SCRAM credential configs for user-principal 'alice' are SCRAM-SHA-256=iterations=4096",
            "SCRAM credential configs for user-principal 'bob' are SCRAM-SHA-512=iterations=8192",
        ]
        await log_in(at.open, keys(MECHANISMS[1], "b0b", "bob"))


async def test_a_renewal_with_an_old_password_ends_the_session(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path, **{"connections.max.reauth.ms": "1500"}) as at, admin_at(at.admin) as admin:
        await admin.set_scram_credential("alice", MECHANISMS[0], PASSWORD)
        security = SecuritySettings.from_properties(keys(MECHANISMS[0]))
        async with Client(at.open, security=security) as client:
            await client.metadata()
            await admin.set_scram_credential("alice", MECHANISMS[0], OTHER_PASSWORD)
            async with asyncio.timeout(60):
                while "the session cannot be renewed" not in caplog.text:  # noqa: ASYNC110 (a log tells nobody)
                    await asyncio.sleep(0.02)
    assert "failed during re-authentication due to invalid credentials" in caplog.text
    assert "login failed: Invalid client credentials of user 'alice'" in caplog.text


@pytest.mark.parametrize(
    ("value", "is_allowed"),
    [
        ("org.apache.kafka.common.security.scram.ScramLoginModule required;", True),
        ('org.apache.kafka.common.security.plain.PlainLoginModule required user_a="s3cret";', False),
    ],
)
async def test_kafkas_key_of_the_login_module(tmp_path: Path, value: str, is_allowed: bool) -> None:
    more = {"listener.name.open.scram-sha-256.sasl.jaas.config": value}
    if is_allowed:
        async with running(tmp_path, **more):
            return
    with pytest.raises(ConfigError, match="must name ScramLoginModule") as refused:
        async with running(tmp_path, **more):
            pass
    assert "s3cret" not in str(refused.value)
