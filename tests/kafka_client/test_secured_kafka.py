"""TLS and SASL of the client against Apache Kafka's own."""

from __future__ import annotations

import asyncio
import base64
import json
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_client import Admin, BatchFetcher, BatchProducer, Client, NewTopic, TopicPartition
from kafka_client.cluster.authentication import Authenticator
from kafka_client.cluster.connection import Connection
from kafka_client.errors import AuthenticationFailed, ConnectionClosed, MillstreamError, TlsFailed
from kafka_client.security.settings import SecuritySettings
from kafka_client.wire.messages.metadata import MetadataRequest
from tests.kafka_client.running import run
from tests.support.java import needs_kafka
from tests.support.secured_kafka import PASSWORD, USER, SecuredKafka, jaas

pytestmark = needs_kafka

SCRAMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
MODULES = {
    "PLAIN": "plain.PlainLoginModule",
    **dict.fromkeys(SCRAMS, "scram.ScramLoginModule"),
}


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    with SecuredKafka(tmp_path_factory.mktemp("secured") / "kafka") as kafka:
        yield kafka


def login(kafka: SecuredKafka, mechanism: str, password: str = PASSWORD, **more: str) -> SecuritySettings:
    properties = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": jaas(MODULES[mechanism], username=USER, password=password),
    }
    return SecuritySettings.from_properties({**properties, **kafka.trust, **more})


def token(subject: str, lifetime: float = 3600) -> str:
    """Return an unsecured JWT, which Kafka's development validator accepts."""
    now = time.time()
    claims = {"sub": subject, "iat": now - 1, "exp": now + lifetime}
    parts = (json.dumps(part).encode() for part in ({"alg": "none"}, claims))
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts) + "."


def oauth(kafka: SecuredKafka, text: str) -> SecuritySettings:
    properties = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER", **kafka.trust}
    return SecuritySettings.from_properties(properties, token=lambda: text)


async def goes_round(bootstrap: str, security: SecuritySettings, topic: str) -> None:
    """Write a record of 100 KB and read it back."""
    tp = TopicPartition(topic, 0)
    async with Client(bootstrap, security=security) as client:
        await Admin(client).create_topics([NewTopic(topic, 1, 1)])
        async with BatchProducer(client) as producer:
            await producer.send(topic, 0, [(0, b"k", b"v" * 100_000, ())])
            await producer.flush()
        async with BatchFetcher(client) as fetcher:
            fetcher.assign({tp: 0})
            fetched = await fetcher.fetch(timeout_ms=20_000)
            assert [len(record[3] or b"") for each in fetched for record in each.records()] == [100_000]


async def refusal(
    bootstrap: str, security: SecuritySettings | None, *, once: bool = False
) -> MillstreamError:
    """Return the error that `connect` raises; with `once`, the one of a request without retries."""
    client = Client(bootstrap, security=security)
    with pytest.raises(MillstreamError) as caught:
        await (client.request(MetadataRequest(topics=[])) if once else client.connect())
    await client.close()
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))
    return caught.value


@pytest.mark.parametrize("mechanism", MODULES)
def test_a_login_over_tls(kafka: SecuredKafka, mechanism: str) -> None:
    topic = f"by-{mechanism}".lower()
    run(goes_round(kafka.at("SASL_SSL"), login(kafka, mechanism), topic))


def test_a_login_by_token_over_tls(kafka: SecuredKafka) -> None:
    run(goes_round(kafka.at("SASL_SSL"), oauth(kafka, token("alice")), "by-token"))


def test_mutual_tls_by_pkcs12_and_pem(kafka: SecuredKafka, tmp_path: Path) -> None:
    issued = kafka.authority.issue("client")
    password = {"ssl.keystore.password": "hunter2"}
    stores = {
        "pkcs12": {
            "ssl.keystore.location": str(issued.write_pkcs12(tmp_path / "k.p12", "hunter2")),
            **password,
        },
        "pem": {
            "ssl.keystore.location": str(issued.write_pem(tmp_path / "k.pem")),
            "ssl.keystore.type": "PEM",
        },
    }
    for name, store in stores.items():
        properties = {"security.protocol": "SSL", **kafka.trust, **store}
        run(goes_round(kafka.at("MUTUAL"), SecuritySettings.from_properties(properties), f"by-{name}"))


@pytest.mark.parametrize("mechanism", MODULES)
async def test_a_wrong_password(kafka: SecuredKafka, mechanism: str) -> None:
    error = await refusal(kafka.at("SASL_SSL"), login(kafka, mechanism, "hunter2 wrong"))
    assert isinstance(error, AuthenticationFailed)
    assert (error.mechanism, error.user, error.broker) == (mechanism, USER, kafka.at("SASL_SSL"))
    assert "Authentication failed" in error.reason


async def test_a_token_that_has_expired(kafka: SecuredKafka) -> None:
    error = await refusal(kafka.at("SASL_SSL"), oauth(kafka, token("alice", -100)))
    assert isinstance(error, AuthenticationFailed)
    assert error.mechanism == "OAUTHBEARER"


async def test_a_mechanism_that_is_not_enabled(kafka: SecuredKafka) -> None:
    security = login(kafka, "SCRAM-SHA-512", **{"security.protocol": "SASL_PLAINTEXT"})
    error = await refusal(kafka.at("SHORT"), security)
    assert isinstance(error, AuthenticationFailed)
    assert error.reason.endswith("(sasl.mechanism): PLAIN")


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
async def test_no_certificate_where_one_is_asked_for(kafka: SecuredKafka, version: str) -> None:
    properties = {"security.protocol": "SSL", **kafka.trust, "ssl.enabled.protocols": version}
    error = await refusal(kafka.at("MUTUAL"), SecuritySettings.from_properties(properties))
    assert isinstance(error, TlsFailed)
    assert "ssl.keystore.location" in str(error)


async def test_the_wrong_protocol_at_each_kind_of_listener(kafka: SecuredKafka) -> None:
    tls = SecuritySettings.from_properties({"security.protocol": "SSL", **kafka.trust})
    error = await refusal(kafka.at("SASL_SSL"), None, once=True)
    assert "the listener speaks TLS" in str(error), error
    error = await refusal(kafka.bootstrap, tls, once=True)
    assert "the listener speaks no TLS" in str(error), error
    for listener, security in (("SHORT", None), ("SASL_SSL", tls)):
        error = await refusal(kafka.at(listener), security, once=True)
        assert isinstance(error, ConnectionClosed)
        assert "if the listener asks for SASL" in str(error), error
    plain = login(kafka, "PLAIN", **{"security.protocol": "SASL_PLAINTEXT"})
    error = await refusal(kafka.bootstrap, plain)
    assert "the listener asks for no SASL" in str(error), error


async def test_sessions_are_renewed_before_the_broker_ends_them(
    kafka: SecuredKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Late renewals would show: the broker closes the connection, and none logs in three times."""
    logins: list[Connection] = []
    authenticate = Authenticator._authenticate

    async def counted(self: Authenticator, connection: Connection) -> float:
        lifetime = await authenticate(self, connection)
        logins.append(connection)
        return lifetime

    monkeypatch.setattr(Authenticator, "_authenticate", counted)
    plain = login(kafka, "PLAIN", **{"security.protocol": "SASL_PLAINTEXT"})
    async with Client(kafka.at("SHORT"), security=plain) as client:
        # A machine that stands still for long may lose a session; the next one counts from the start.
        while max(map(logins.count, logins)) < 3:
            await client.metadata([], refresh=True)
            await asyncio.sleep(0.05)
