"""Three brokers that talk to each other by TLS and SASL: copies, forwarded requests, an election."""

from __future__ import annotations

import asyncio
import logging
import ssl
from pathlib import Path

import pytest

from kafka_client import Admin, BatchProducer, Client, NewTopic
from kafka_client.errors import ConfigError
from kafka_client.security.settings import SecuritySettings
from logd.api.broker_requests import BROKER_REQUESTS
from logd.broker_server import BrokerServer
from logd.server import tls_reload
from tests.logd.broker.cluster.brokers import Brokers
from tests.logd.broker.cluster.forged import forged
from tests.support.certificates import Authority
from tests.support.raw_client import RawClient

CA = Authority("test CA")
OTHER_CA = Authority("another CA")
OPTIONS = 'required username="b" password="p"'
PLAIN = f'org.apache.kafka.common.security.plain.PlainLoginModule {OPTIONS} user_alice="a";'
SCRAM = f"org.apache.kafka.common.security.scram.ScramLoginModule {OPTIONS};"
PROTOCOLS = {
    "mutual TLS": ("SSL", {"ssl.client.auth": "required"}),
    "SASL with the secret": ("SASL_SSL", {}),
    "PLAIN": (
        "SASL_SSL",
        {"sasl.mechanism.inter.broker.protocol": "PLAIN", "connections.max.reauth.ms": "3000"},
    ),
    "SCRAM": (
        "SASL_PLAINTEXT",
        {
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
            "listener.name.inner.scram-sha-512.sasl.jaas.config": SCRAM,
        },
    ),
}


def settings(folder: Path, protocol: str, more: dict[str, str]) -> dict[str, str]:
    CA.issue("broker", ["127.0.0.1"]).write_pem(folder / "broker.pem")
    CA.write_pem(folder / "ca.pem")
    return {
        "listeners": "CLIENTS://127.0.0.1:0,INNER://127.0.0.1:0",
        "listener.security.protocol.map": f"CLIENTS:PLAINTEXT,INNER:{protocol}",
        "inter.broker.listener.name": "INNER",
        "controlled.shutdown.enable": "false",
        "listener.name.inner.ssl.keystore.location": str(folder / "broker.pem"),
        "ssl.keystore.type": "PEM",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "ca.pem"),
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.inner.plain.sasl.jaas.config": PLAIN,
        **more,
    }


def client_keys(folder: Path, protocol: str, issued_by: Authority = CA) -> dict[str, str]:
    issued_by.issue("alice").write_pem(folder / "alice.pem")
    return {
        "security.protocol": protocol,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "ca.pem"),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "alice.pem"),
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": "a",
    }


async def create(bootstrap: str, name: str, replicas: int = 3) -> None:
    async with Client(bootstrap) as client:
        await Admin(client).create_topics([NewTopic(name, 3, replicas)])


async def write(brokers: Brokers, topic: str) -> None:
    """Write with acks=all, so that followers must have copied."""
    async with Client(brokers.bootstrap) as client, BatchProducer(client, acks=-1) as producer:
        for partition in range(3):
            await (await producer.send(topic, partition, [(0, None, b"x", ())]))


def is_refused(port: int, tls: ssl.SSLContext | None = None) -> bool:
    """Return True if a client gets no answer to a broker's request."""
    with RawClient(port) as client:
        if tls is not None:
            client.socket = tls.wrap_socket(client.socket)
        client.send(forged(BROKER_REQUESTS[56]))
        return client.is_closed_by_peer()


def tls_of_alice(folder: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_verify_locations(folder / "ca.pem")
    context.load_cert_chain(folder / "alice.pem")
    return context


async def log_in(server: BrokerServer, keys: dict[str, str]) -> None:
    security = SecuritySettings.from_properties(keys)
    async with Client(str(server.broker.endpoints[1]), security=security) as client:
        await client.metadata()


@pytest.mark.parametrize("title", PROTOCOLS)
async def test_three_brokers_and_an_election(zookeeper: str, tmp_path: Path, title: str) -> None:
    protocol, more = PROTOCOLS[title]
    async with Brokers(zookeeper, tmp_path, **settings(tmp_path, protocol, more)) as brokers:
        # Each broker is asked: two of the three have to forward the request.
        for id_, each in brokers.up.items():
            await create(str(each.broker.endpoints[0]), f"by-{id_}")
        await write(brokers, "by-1")
        await brokers.until(lambda: all(len(each.topics) == 3 for each in brokers.up.values()))
        inner = brokers.up[1].broker.endpoints[1]
        assert await asyncio.to_thread(is_refused, inner.port)
        await log_in(brokers.up[1], client_keys(tmp_path, protocol))
        old = next(id_ for id_, each in brokers.up.items() if each is brokers.controller)
        await brokers.stop(old)
        await brokers.until(
            lambda: any(each.broker.catalog.controller is not None for each in brokers.up.values())
        )
        await create(str(next(iter(brokers.up.values())).broker.endpoints[0]), "after", replicas=2)
        await write(brokers, "after")
        await brokers.start(old)
        await brokers.until(lambda: "after" in brokers.up[old].topics)


async def test_a_client_with_a_certificate_is_no_broker(
    zookeeper: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    protocol, more = PROTOCOLS["mutual TLS"]
    async with Brokers(zookeeper, tmp_path, count=1, **settings(tmp_path, protocol, more)) as brokers:
        server = brokers.up[1]
        port = server.broker.endpoints[1].port
        client_keys(tmp_path, "SSL", OTHER_CA)
        assert await asyncio.to_thread(is_refused, port, tls_of_alice(tmp_path))
        assert "CERTIFICATE_VERIFY_FAILED" in caplog.text
        await log_in(server, client_keys(tmp_path, "SSL"))
        assert await asyncio.to_thread(is_refused, port, tls_of_alice(tmp_path))
        assert "sent AlterPartition, which only a broker of the cluster may send" in caplog.text


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512"}, "needs username and password"),
        ({"sasl.mechanism.inter.broker.protocol": "GSSAPI"}, "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"),
        ({"security.inter.broker.protocol": "SSL"}, "take one of the two out"),
    ],
)
async def test_settings_that_do_not_fit(
    zookeeper: str, tmp_path: Path, more: dict[str, str], text: str
) -> None:
    with pytest.raises(ConfigError, match=text):
        await Brokers(zookeeper, tmp_path, **settings(tmp_path, "SASL_SSL", more)).start(1)


async def test_brokers_choose_a_listener_by_its_protocol(zookeeper: str, tmp_path: Path) -> None:
    by_name = settings(tmp_path, "SASL_SSL", {})
    by_protocol = by_name | {
        "listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0",
        "ssl.keystore.location": str(tmp_path / "broker.pem"),
        "security.inter.broker.protocol": "SSL",
    }
    del by_protocol["inter.broker.listener.name"], by_protocol["listener.security.protocol.map"]
    async with Brokers(zookeeper, tmp_path, count=2, **by_protocol) as brokers:
        await create(brokers.bootstrap, "t", replicas=2)
        await write(brokers, "t")
        logins = [each.broker.broker_login for each in brokers.up.values()]
        assert [login.listener for login in logins if login is not None] == ["SSL", "SSL"]


async def test_brokers_change_to_another_authority(
    zookeeper: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A broker that goes on trusts, and is trusted by, one that starts with the new certificates."""
    monkeypatch.setattr(tls_reload, "LOOK_MS", 10.0)
    caplog.set_level(logging.INFO, "logd.server")
    protocol, more = PROTOCOLS["mutual TLS"]
    async with Brokers(zookeeper, tmp_path, 2, **settings(tmp_path, protocol, more)) as brokers:
        await create(brokers.bootstrap, "before", replicas=2)
        await brokers.stop(2)
        OTHER_CA.issue("broker", ["127.0.0.1"]).write_pem(tmp_path / "broker.pem")
        OTHER_CA.write_pem(tmp_path / "ca.pem")
        await brokers.until(lambda: "new connections use the changed certificates" in caplog.text)
        await brokers.start(2)
        await brokers.until(lambda: all(len(each.broker.image.brokers) == 2 for each in brokers.up.values()))
        await create(brokers.bootstrap, "after", replicas=2)
        await write(brokers, "after")
