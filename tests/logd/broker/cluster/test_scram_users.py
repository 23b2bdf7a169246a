"""SCRAM users of a cluster: in Kafka's znodes, known to all brokers, and the same after an election."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kafka_client import Admin, Client
from kafka_client.errors import AuthenticationFailed
from kafka_client.security.settings import SecuritySettings
from logd.broker_server import BrokerServer
from logd.metadata.zookeeper.znodes import paths
from logd.security.scram_credential import ScramCredential
from tests.logd.broker.cluster.brokers import Brokers
from tests.logd.metadata.zookeeper.sessions import opened

MECHANISM = "SCRAM-SHA-256"
PASSWORD = "s3cret-of-alice"
LISTENERS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,OUT://127.0.0.1:0",
    "listener_security_protocol_map": "PLAINTEXT:PLAINTEXT,OUT:SASL_PLAINTEXT",
    "inter_broker_listener_name": "PLAINTEXT",
    "sasl_enabled_mechanisms": MECHANISM,
    "connection_failed_authentication_delay_ms": "1",
}


async def log_in(server: BrokerServer, user: str = "alice", password: str = PASSWORD) -> None:
    properties = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": MECHANISM,
        "sasl.username": user,
        "sasl.password": password,
    }
    address = str(server.broker.endpoints[1])
    async with Client(address, security=SecuritySettings.from_properties(properties)) as client:
        await client.metadata()


def decoy_key_of(server: BrokerServer) -> bytes:
    login = server.broker.broker_login
    assert login is not None
    return login.decoy_key


def know(brokers: Brokers, *users: str) -> bool:
    return all(each.broker.image.user_configs.keys() == set(users) for each in brokers.up.values())


async def test_users_of_three_brokers(zookeeper: str, tmp_path: Path) -> None:
    async with Brokers(zookeeper, tmp_path, **LISTENERS) as brokers:
        async with Client(brokers.bootstrap) as client:
            admin = Admin(client)
            for user in ("alice", "bob.ä~"):
                await admin.set_scram_credential(user, MECHANISM, PASSWORD)
            await brokers.until(lambda: know(brokers, "alice", "bob.ä~"))
            for each in brokers.up.values():
                await log_in(each)
                with pytest.raises(AuthenticationFailed, match="due to invalid credentials"):
                    await log_in(each, "carol")
            assert len({decoy_key_of(each) for each in brokers.up.values()}) == 1
            await admin.delete_scram_credential("bob.ä~", MECHANISM)
            await brokers.until(lambda: know(brokers, "alice"))
        await _check_znodes(zookeeper)
        await brokers.stop(next(id_ for id_, each in brokers.up.items() if each is brokers.controller))
        await brokers.until(
            lambda: any(each.broker.catalog.controller is not None for each in brokers.up.values())
        )
        async with Client(brokers.bootstrap) as client:
            assert await Admin(client).describe_scram_credentials() == {"alice": {MECHANISM: 4096}}
        for each in brokers.up.values():
            await log_in(each)


async def _check_znodes(connect: str) -> None:
    """Check the contents of the znodes: they are Kafka's."""

    async with opened(connect) as session:

        async def document(path: str) -> Any:
            return json.loads((await session.get(path))[0])

        names = ["alice", "bob.%C3%A4%7E"]
        assert await session.children("/config/users") == names
        alice = await document("/config/users/alice")
        assert alice["version"] == 1
        assert list(alice["config"]) == [MECHANISM]
        assert ScramCredential.from_text(alice["config"][MECHANISM]).iterations == 4096
        assert (await document(f"/config/users/{names[1]}"))["config"] == {}
        notifications = await session.children(paths.CONFIG_CHANGES)
        changed = [await document(f"{paths.CONFIG_CHANGES}/{each}") for each in notifications]
        assert [each["entity_path"] for each in changed] == [
            "users/alice",
            f"users/{names[1]}",
            f"users/{names[1]}",
        ]
