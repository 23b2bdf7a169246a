"""SCRAM users of a cluster: in Kafka's znodes, known to all brokers, and the same after an election."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafka_client import Admin, Client
from kafka_client.errors import AuthenticationFailed, KafkaError
from kafka_client.security.settings import SecuritySettings
from logd.broker.first_users import set_in_zookeeper
from logd.broker_server import BrokerServer
from logd.config.load import from_properties
from logd.metadata.controller.scram import Upsertion
from logd.metadata.zookeeper.errors import ClusterRuns
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


def upsertion(user: str) -> Upsertion:
    salted = hashlib.pbkdf2_hmac("sha256", PASSWORD.encode(), b"salt", 4096)
    return Upsertion(user=user, mechanism=1, iterations=4096, salt=b"salt", salted_password=salted)


def decoy_key_of(server: BrokerServer) -> bytes:
    login = server.broker.broker_login
    assert login is not None
    return login.decoy_key


def know(brokers: Brokers, *users: str) -> bool:
    return all(each.broker.image.user_configs.keys() == set(users) for each in brokers.up.values())


async def test_users_of_three_brokers(zookeeper: str, tmp_path: Path) -> None:
    config = from_properties({"zookeeper.connect": zookeeper, "node.id": "1"}).config
    assert await set_in_zookeeper(config, [upsertion("alice")]) == zookeeper
    with pytest.raises(KafkaError, match="Too few iterations"):
        await set_in_zookeeper(config, [replace(upsertion("alice"), iterations=1)])
    async with Brokers(zookeeper, tmp_path, **LISTENERS) as brokers:
        async with Client(brokers.bootstrap) as client:
            admin = Admin(client)
            assert await admin.describe_scram_credentials() == {"alice": {MECHANISM: 4096}}
            with pytest.raises(ClusterRuns, match="millstream user add"):
                await set_in_zookeeper(config, [upsertion("eve")])
            await admin.set_scram_credential("bob.ä~", MECHANISM, PASSWORD)
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
