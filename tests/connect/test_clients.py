"""Which client a connector's tasks work with: the worker's, or one of their own (KIP-458)."""

import logging

import pytest

from connect.runtime.client_settings import client_arguments, consumer_arguments, producer_arguments
from connect.runtime.clients import Clients
from connect.runtime.worker_config import WorkerConfig
from kafka_client.errors import ConfigError
from kafka_client.security.allowed_urls import URLS

SECRET = "hunter2"
LOGIN = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "worker",
    "sasl.password": SECRET,
}


def clients(**worker: str) -> Clients:
    return Clients(WorkerConfig.parse({**LOGIN, **worker}))


def user(client) -> str:
    return client._opener._security.sasl.username


def test_connectors_without_settings_of_their_own_share_the_workers_clients():
    shared = clients()
    reading, producing = shared.worker(producing=False), shared.worker(producing=True)
    assert reading is not producing
    assert shared.of("sink", {"name": "a"}) is shared.of("sink", {"name": "b"}) is reading
    assert shared.of("source", {"name": "c", "producer.override.acks": "1"}) is producing
    assert user(reading) == "worker"


def test_a_connectors_settings_go_before_the_workers_and_its_role_before_the_rest():
    shared = clients(**{"producer.sasl.username": "producers", "admin.sasl.username": "admin"})
    assert user(shared.worker(producing=True)) == "admin"
    assert user(shared.of("sink", {})) == "worker"
    assert user(shared.of("source", {})) == "producers"
    own = {"producer.override.sasl.username": "own", "consumer.override.client.id": "me"}
    assert user(shared.of("source", own)) == "own"
    assert shared.of("source", own) is shared.of("source", dict(own))
    assert shared.of("sink", own).client_id == "me"


def test_each_role_has_a_cluster_of_its_own_if_the_connector_names_one():
    shared = clients(**{"bootstrap.servers": "a:1", "consumer.bootstrap.servers": "b:1"})
    other = {f"{role}.override.bootstrap.servers": f"{role}:1,{role}:2" for role in ("producer", "admin")}
    servers = {
        name: client._bootstrap
        for name, client in {
            "worker": shared.worker(producing=False),
            "source": shared.of("source", other),
            "sink": shared.of("sink", other),
            "admin": shared.admin(other),
            "dead letters": shared.dead_letters(other),
        }.items()
    }
    assert servers == {
        "worker": [("a", 1)],
        "source": [("producer", 1), ("producer", 2)],
        "sink": [("b", 1)],
        "admin": [("admin", 1), ("admin", 2)],
        "dead letters": [("producer", 1), ("producer", 2)],
    }
    assert shared.admin({}) is shared.worker(producing=False)


def test_an_empty_list_of_brokers_is_refused():
    with pytest.raises(ConfigError, match="must name a broker") as caught:
        clients().admin({"admin.override.bootstrap.servers": " ,"})
    assert caught.value.key == "admin.override.bootstrap.servers"


def test_an_error_names_the_key_as_the_connector_has_it():
    with pytest.raises(ConfigError) as caught:
        client_arguments(LOGIN, {"producer.override.sasl.mechanism": SECRET[:3]}, "producer")
    assert caught.value.key == "producer.override.sasl.mechanism"
    with pytest.raises(ConfigError) as caught:
        client_arguments(LOGIN, {"producer.override.sasl.jaas.config": SECRET}, "producer")
    assert caught.value.key == "producer.override.sasl.jaas.config"
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(("size", "ahead"), [(2_000_000, 2_000_000), (0, 1), (1 << 30, 64 << 20)])
def test_a_sink_fetches_no_more_ahead_than_one_fetch_may_have(size: int, ahead: int):
    arguments = consumer_arguments({}, {"consumer.override.fetch.max.bytes": str(size)})
    assert arguments["fetch_max_bytes"] == size
    assert arguments["buffer_max_bytes"] == ahead


def test_what_has_no_effect_is_said(caplog):
    worker = {**LOGIN, "consumer.key.deserializer": "x", "producer.acks": "all", "group.id": "g"}
    connector = {"consumer.override.max.poll.records": "1", "consumer.override.fetch.min.byte": "1"}
    assert consumer_arguments(worker, connector) == {"auto_offset_reset": "earliest"}
    assert producer_arguments(worker, connector)["acks"] == -1
    with caplog.at_level(logging.WARNING):
        assert [
            record.getMessage() for record in caplog.records if record.name.startswith("kafka_client.")
        ] == [
            "without effect here: consumer.key.deserializer, consumer.override.max.poll.records",
            "consumer.override.fetch.min.byte is not known and has no effect; fetch.min.bytes?",
        ]


def test_a_connector_gets_tokens_from_listed_urls_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(URLS, raising=False)
    login = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
    key = "sasl.oauthbearer.token.endpoint.url"
    jaas = (
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
        'clientId="me" clientSecret="s3cret";'
    )
    worker = {**login, "sasl.jaas.config": jaas, key: "https://idp/token"}
    for url in ("https://inside/token", "file:///etc/shadow"):
        with pytest.raises(ConfigError, match="SASL_OAUTHBEARER_ALLOWED") as error:
            producer_arguments(worker, {f"producer.override.{key}": url})
        assert f"producer.override.{key}" in str(error.value)
    producer_arguments(worker, {f"producer.override.{key}": "https://idp/token"})
    monkeypatch.setenv(URLS, "https://inside/token,https://idp/token")
    producer_arguments(worker, {f"producer.override.{key}": "https://inside/token"})
