from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kafka_client.errors import ConfigError
from streams import StreamsConfig, log_and_continue, log_and_fail

NEEDED = {"application.id": "app", "bootstrap.servers": "localhost:9092"}


def test_kafkas_keys_are_read_and_converted() -> None:
    config = StreamsConfig.from_properties({**NEEDED, "commit.interval.ms": "100"})

    assert config.commit_interval_ms == 100
    assert config.deserialization_exception_handler is log_and_fail


def test_settings_of_rebalances_are_kafkas() -> None:
    properties = {
        "num.standby.replicas": "1",
        "acceptable.recovery.lag": "0",
        "max.warmup.replicas": "3",
        "probing.rebalance.interval.ms": "60000",
        "main.consumer.max.poll.interval.ms": "1000",
    }
    config = StreamsConfig.from_properties({**NEEDED, **properties})
    assert (config.num_standby_replicas, config.acceptable_recovery_lag, config.max_warmup_replicas) == (
        1,
        0,
        3,
    )
    assert (config.probing_rebalance_interval_ms, config.max_poll_interval_ms) == (60_000, 1000)


@pytest.mark.parametrize(
    ("properties", "level"),
    [
        ({}, "read_committed"),
        ({"isolation.level": "read_uncommitted"}, "read_uncommitted"),
        ({"consumer.isolation.level": "read_uncommitted"}, "read_uncommitted"),
        (
            {
                "main.consumer.isolation.level": "read_committed",
                "consumer.isolation.level": "read_uncommitted",
            },
            "read_committed",
        ),
    ],
)
def test_the_isolation_level_is_set_as_in_kafka_streams(properties: dict[str, str], level: str) -> None:
    """The isolation level may have the consumer's prefix; the main consumer's prefix overrides it."""
    assert StreamsConfig.from_properties({**NEEDED, **properties}).isolation_level == level


@pytest.mark.parametrize(
    "text", ["continue", "log_and_continue", "org.apache.kafka.streams.errors.LogAndContinueExceptionHandler"]
)
def test_exception_handlers_have_names(text: str) -> None:
    config = StreamsConfig.from_properties({**NEEDED, "deserialization.exception.handler": text})

    assert config.deserialization_exception_handler is log_and_continue


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("commit.interval.ms", "soon"),
        ("commit.intervall.ms", "100"),
        ("deserialization.exception.handler", "shrug"),
        ("auto.offset.reset", "middle"),
        ("compression.type", "snapy"),
        ("session.timeout.ms", "-5"),
        ("isolation.level", "read_all"),
        ("consumer.isolation.level", "read_all"),
        ("consumer.commit.interval.ms", "100"),
        ("input.buffer.max.bytes", "0"),
    ],
)
def test_what_cannot_be_used_is_named(key: str, value: str) -> None:
    with pytest.raises(ConfigError, match=key) as caught:
        StreamsConfig.from_properties({**NEEDED, key: value})

    assert value in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("commit_interval_ms", "500"),
        ("commit_interval_ms", timedelta(seconds=1)),
        ("deserialization_exception_handler", "log_and_continue"),
    ],
)
def test_keywords_of_another_type_are_named(name: str, value: object) -> None:
    settings: dict[str, Any] = {"application_id": "app", "bootstrap_servers": "localhost:9092", name: value}
    with pytest.raises(ConfigError, match=name.replace("_", ".")):
        StreamsConfig(**settings)


def test_the_guarantee_says_how_often_is_committed() -> None:
    exactly_once = {**NEEDED, "processing.guarantee": "exactly_once_v2"}

    assert StreamsConfig.from_properties(NEEDED).commit_every_ms == 30_000
    assert StreamsConfig.from_properties(exactly_once).commit_every_ms == 100
    config = StreamsConfig.from_properties({**exactly_once, "commit.interval.ms": "5000"})
    assert config.commit_every_ms == 5000


def test_the_producers_transaction_timeout_is_taken() -> None:
    assert StreamsConfig.from_properties(NEEDED).transaction_timeout_ms == 10_000
    config = StreamsConfig.from_properties({**NEEDED, "producer.transaction.timeout.ms": "60000"})
    assert config.transaction_timeout_ms == 60_000


@pytest.mark.parametrize(
    ("key", "value"),
    [("processing.guarantee", "exactly_once"), ("isolation.level", "read_uncommitted")],
)
def test_what_does_not_go_with_exactly_once_is_named(key: str, value: str) -> None:
    """``exactly_once`` of Kafka before 4.0 is no more there, either."""
    with pytest.raises(ConfigError, match=key):
        StreamsConfig.from_properties({**NEEDED, "processing.guarantee": "exactly_once_v2", key: value})
