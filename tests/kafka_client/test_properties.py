"""Kafka's client keys as arguments, for every part: prefixes, errors, and what is said of the rest."""

from __future__ import annotations

import inspect
import logging
from pathlib import Path

import pytest

from kafka_client import BatchFetcher, BatchProducer, Client, Consumer, TransactionalProducer
from kafka_client.errors import ConfigError
from kafka_client.properties import (
    CLIENT,
    CONSUMER,
    FETCHER,
    OF_JAVA,
    PRODUCER,
    TRANSACTIONAL,
    ClientProperties,
    Table,
    one_client,
    read_command_config,
)

SECRET = "hunter2"
LOGIN = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "alice",
    "sasl.password": SECRET,
}


@pytest.mark.parametrize(
    ("table", "target"),
    [
        (CLIENT, Client),
        (PRODUCER, BatchProducer),
        (TRANSACTIONAL, TransactionalProducer),
        (CONSUMER, Consumer),
        (FETCHER, BatchFetcher),
    ],
)
def test_every_key_leads_to_an_argument_there_is(table: Table, target: type) -> None:
    accepted = inspect.signature(target).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in accepted):
        accepted = [*accepted, *inspect.signature(BatchFetcher).parameters.values()]  # passed on to it
    assert {name for name, _ in table.values()} <= {parameter.name for parameter in accepted}
    assert not table.keys() & OF_JAVA


def test_a_later_prefix_wins() -> None:
    properties = ClientProperties.layered(
        {"consumer.fetch.min.bytes": "2", "fetch.min.bytes": "1", "client.id": "me", "producer.acks": "all"},
        "",
        "consumer.",
    )
    assert properties.fetcher() == {"fetch_min_bytes": 2}
    assert properties.client() == {"client_id": "me"}
    assert properties.producer() == {}


def test_roles_take_their_own_keys() -> None:
    properties = {"producer.acks": "all", "producer.linger.ms": "0.5", "consumer.max.poll.interval.ms": "9"}
    assert ClientProperties.layered(properties, "producer.").producer() == {"acks": -1, "linger_ms": 0.5}
    assert ClientProperties.layered(properties, "consumer.").consumer() == {"rebalance_timeout_ms": 9}


@pytest.mark.parametrize(
    ("text", "assignors"),
    [
        ("org.apache.kafka.clients.consumer.RoundRobinAssignor", ["roundrobin"]),
        (
            "org.apache.kafka.clients.consumer.RangeAssignor, "
            "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
            ["range", "cooperative-sticky"],
        ),
        ("cooperative-sticky,range,range", ["cooperative-sticky", "range"]),
    ],
)
def test_assignors_are_named_by_kafka_s_classes(text: str, assignors: list[str]) -> None:
    properties = ClientProperties.layered({"partition.assignment.strategy": text}, "")
    assert properties.consumer() == {"assignors": assignors}


@pytest.mark.parametrize("text", ["org.apache.kafka.clients.consumer.StickyAssignor", "", "Mine, range"])
def test_an_unknown_assignor_is_refused(text: str) -> None:
    properties = ClientProperties.layered({"consumer.partition.assignment.strategy": text}, "consumer.")
    with pytest.raises(ConfigError, match=r"^consumer\.partition.*must be of RangeAssignor, "):
        properties.consumer()


def test_a_transactional_producer_takes_a_producer_s_keys_and_its_own() -> None:
    properties = {
        "transactional.id": "orders",
        "transaction.timeout.ms": "9000",
        "acks": "all",
        "enable.idempotence": "true",
        **{key: "7" for key in PRODUCER if key.endswith((".ms", ".size", ".memory"))},
        "max.in.flight.requests.per.connection": "2",
        "compression.type": "zstd",
    }
    arguments = ClientProperties.layered(properties, "").transactional_producer()
    assert (arguments["transactional_id"], arguments["transaction_timeout_ms"]) == ("orders", 9_000)
    assert (arguments["linger_ms"], arguments["compression_type"]) == (7, "zstd")
    assert arguments.keys() <= inspect.signature(TransactionalProducer).parameters.keys()


@pytest.mark.parametrize(
    ("properties", "key"),
    [
        ({}, "transactional.id"),
        ({"producer.transactional.id": ""}, "producer.transactional.id"),
        ({"producer.transactional.id": "a", "producer.acks": "1"}, "producer.acks"),
        (
            {"producer.transactional.id": "a", "producer.enable.idempotence": "false"},
            "producer.enable.idempotence",
        ),
        (
            {"producer.transactional.id": "a", "producer.transaction.timeout.ms": "soon"},
            "producer.transaction.timeout.ms",
        ),
    ],
)
def test_what_a_transaction_cannot_have_is_refused(properties: dict[str, str], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ClientProperties.layered(properties, "producer.").transactional_producer()
    assert caught.value.key == key


@pytest.mark.parametrize(
    ("properties", "key"),
    [
        ({"consumer.request.timeout.ms": "soon"}, "consumer.request.timeout.ms"),
        ({"consumer.security.protocol": "SASL_SSL"}, "consumer.sasl.mechanism"),
        ({"security.protocol": "SASL_SSL", "consumer.sasl.mechanism": "X"}, "consumer.sasl.mechanism"),
        ({**LOGIN, "consumer.sasl.pasword": SECRET}, "consumer.sasl.pasword"),
    ],
)
def test_an_error_names_the_key_as_it_was_written(properties: dict[str, str], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ClientProperties.layered(properties, "", "consumer.").client()
    assert caught.value.key == key
    assert SECRET not in str(caught.value)


def test_nothing_is_passed_over_silently(caplog: pytest.LogCaptureFixture) -> None:
    properties = {
        "consumer.key.deserializer": "x",
        "consumer.check.crcs": "true",
        "consumer.fetch.min.byte": "1",
        "consumer.frobnicate": "1",
        "consumer.group.id": "g",
        "consumer.sasl.password": SECRET,
    }
    ClientProperties.layered(properties, "consumer.").tell_rest((*CONSUMER, "group.id"))
    assert [record.getMessage() for record in caplog.records if record.name.startswith("kafka_client.")] == [
        "without effect here: consumer.check.crcs, consumer.key.deserializer",
        "consumer.fetch.min.byte is not known and has no effect; fetch.min.bytes?",
        "consumer.frobnicate is not known and has no effect",
    ]


def test_keys_of_transactions_have_no_effect_where_there_are_none(caplog: pytest.LogCaptureFixture) -> None:
    properties = ClientProperties.layered({"transactional.id": "a", "transaction.timeout.ms": "1"}, "")
    properties.tell_rest(PRODUCER)
    properties.tell_rest((*PRODUCER, *TRANSACTIONAL))
    assert [record.getMessage() for record in caplog.records if record.name.startswith("kafka_client.")] == [
        "without effect here: transaction.timeout.ms, transactional.id"
    ]


def test_one_client_for_several_roles() -> None:
    same = {**LOGIN, **{f"consumer.{key}": value for key, value in LOGIN.items()}}
    assert one_client(same, ("",), ("consumer.",)).client()["security"].sasl.username == "alice"
    with pytest.raises(ConfigError) as caught:
        one_client({**LOGIN, "consumer.sasl.password": SECRET + "!"}, ("",), ("consumer.",))
    assert caught.value.key == "consumer.sasl.password"
    assert SECRET not in str(caught.value)


def test_a_file_for_a_command(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "client.properties"
    text = "".join(f"{key}={value}\n" for key, value in LOGIN.items())
    file.write_text(f"{text}bootstrap.servers=h:1\nrequest.timeout.ms=5\nretries=3\n")
    arguments = read_command_config(file)
    assert (arguments["request_timeout_ms"], arguments["security"].protocol) == (5, "SASL_SSL")
    assert [record.getMessage() for record in caplog.records if record.name.startswith("kafka_client.")] == [
        "without effect here: retries"
    ]
    assert read_command_config(None) == {}
    with pytest.raises(ConfigError, match="--command-config"):
        read_command_config(tmp_path / "none")
    assert logging.getLogger("kafka_client.properties").isEnabledFor(logging.WARNING)
