"""ACLs of a cluster: in Kafka's znodes, known to all brokers, and the same after an election."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from kafka_client import Admin, BatchProducer, Client, NewTopic
from kafka_client.acl import AclEntry, Operation, PatternType, Permission, ResourcePattern, ResourceType
from kafka_client.security.settings import SecuritySettings
from logd.broker.cluster.controller import znode_notifications
from logd.broker_server import BrokerServer
from logd.metadata.zookeeper.znodes import acl_znodes, paths, znodes
from tests.logd.broker.cluster.brokers import Brokers
from tests.logd.metadata.zookeeper.sessions import opened, wait_until_gone
from tests.support.logged_in import LoggedInClient, password_of

T = TypeVar("T")
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
USERS = " ".join(f'user_{user}="{password_of(user)}"' for user in ("root", "alice"))
SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,OUT://127.0.0.1:0",
    "listener_security_protocol_map": "PLAINTEXT:PLAINTEXT,OUT:SASL_PLAINTEXT",
    "inter_broker_listener_name": "PLAINTEXT",
    "sasl_enabled_mechanisms": "PLAIN",
    "listener.name.out.plain.sasl.jaas.config": f"{MODULE} required {USERS};",
    "authorizer_class_name": "kafka.security.authorizer.AclAuthorizer",
    "super_users": "User:root",
}


def client_of(server: BrokerServer, user: str) -> Client:
    properties = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": password_of(user),
    }
    address = str(server.broker.endpoints[1])
    return Client(address, security=SecuritySettings.from_properties(properties))


def logged_in(server: BrokerServer, user: str, work: Callable[[LoggedInClient], T]) -> Awaitable[T]:
    """Call `work` with a client of the broker, in a thread: the broker has this one."""

    def run() -> T:
        with LoggedInClient(server.broker.endpoints[1].port, user) as client:
            return work(client)

    return asyncio.to_thread(run)


def allow(name: str) -> Callable[[LoggedInClient], None]:
    """Let alice describe topics whose names begin so."""
    return lambda client: client.allow(
        ResourceType.TOPIC, name, Operation.DESCRIBE, pattern=PatternType.PREFIXED
    )


async def seen_by_alice(server: BrokerServer) -> set[str]:
    async with client_of(server, "alice") as client:
        return set(await Admin(client).list_topics())


async def test_acls_of_three_brokers(zookeeper: str, tmp_path: Path) -> None:
    async with Brokers(zookeeper, tmp_path, **SETTINGS) as brokers:
        other = next(each for each in brokers.up.values() if each is not brokers.controller)
        async with client_of(other, "root") as root:
            await Admin(root).create_topics([NewTopic("orders", 1, 3), NewTopic("bills", 1, 3)])
            async with BatchProducer(root, acks=-1) as producer:
                await (await producer.send("orders", 0, [(1, None, b"value", ())]))
            await logged_in(other, "root", allow("ord"))
            with pytest.raises(AssertionError, match="'a/b' cannot be a znode's"):
                await logged_in(other, "root", allow("a/b"))
            for each in brokers.up.values():
                await brokers.until(lambda each=each: len(each.broker.image.acls) == 1)  # type: ignore[misc]
                assert await seen_by_alice(each) == {"orders"}
        with pytest.raises(AssertionError):
            await logged_in(other, "alice", allow("bills"))
        await _check_znodes(zookeeper)
        await brokers.stop(next(id_ for id_, each in brokers.up.items() if each is brokers.controller))
        await brokers.until(
            lambda: any(each.broker.catalog.controller is not None for each in brokers.up.values())
        )
        for each in brokers.up.values():
            assert await seen_by_alice(each) == {"orders"}
        await logged_in(next(iter(brokers.up.values())), "root", lambda client: client.forget())
        for each in brokers.up.values():
            await brokers.until(lambda each=each: not each.broker.image.acls)  # type: ignore[misc]
            assert await seen_by_alice(each) == set()


async def _check_znodes(connect: str) -> None:
    async with opened(connect) as session:
        data, _ = await session.get("/kafka-acl-extended/prefixed/Topic/ord")
        (entry,) = json.loads(data)["acls"]
        assert entry == {
            "principal": "User:alice",
            "permissionType": "Allow",
            "operation": "Describe",
            "host": "*",
        }
        (change,) = await session.children("/kafka-acl-extended-changes")
        assert change.startswith("acl_changes_")


async def test_changes_of_other_programs_hold_at_once(
    zookeeper: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with Brokers(zookeeper, tmp_path, 2, **SETTINGS) as brokers, opened(zookeeper) as session:
        async with client_of(brokers.up[1], "root") as client:
            await Admin(client).create_topics([NewTopic("t", 1, 1)])
        pattern = ResourcePattern(ResourceType.TOPIC, PatternType.LITERAL, "t")
        entry = AclEntry("User:alice", "*", Operation.READ, Permission.ALLOW)
        await session.create(acl_znodes.path_of(pattern), acl_znodes.encode_entries([entry]))
        await session.create(
            acl_znodes.change_path_of(pattern), acl_znodes.encode_change(pattern), sequential=True
        )
        await brokers.until(
            lambda: all(each.broker.image.acls == {pattern: (entry,)} for each in brokers.up.values())
        )
        assert f"another program has changed ZooKeeper's {acl_znodes.path_of(pattern)}" in caplog.text
        await session.set("/config/topics/t", b'{"version":1,"config":{"retention.ms":"7"}}')
        for data in (b"?", znodes.encode_config_change("topics/t")):
            await session.create(paths.CONFIG_CHANGE_PREFIX, data, sequential=True)
        configs = {"retention.ms": "7"}
        await brokers.until(
            lambda: all(each.broker.image.topics["t"].configs == configs for each in brokers.up.values())
        )
        await brokers.until(lambda: any(each.broker.catalog.controller for each in brokers.up.values()))
        epoch = brokers.member(brokers.controller.broker.node_id).controlling.elected.epoch
        monkeypatch.setattr(znode_notifications, "KEPT_MS", -1)
        for n in range(3):
            async with client_of(brokers.up[1], "root") as client:
                await Admin(client).incremental_alter_configs("t", {"retention.ms": str(n)})
        for name in await session.children(paths.CONFIG_CHANGES):
            await wait_until_gone(session, f"{paths.CONFIG_CHANGES}/{name}")
        assert brokers.member(brokers.controller.broker.node_id).controlling.elected.epoch == epoch
