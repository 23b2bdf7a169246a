from __future__ import annotations

import pytest

from kafka_client.errors import ConfigError
from logd.config.broker import BROKER_SETTINGS, BrokerConfig
from logd.config.load import from_properties
from logd.config.setting import Kind, Setting, format_value
from logd.config.topic import TOPIC_SETTINGS, TopicConfig


@pytest.mark.parametrize("table", [TOPIC_SETTINGS, BROKER_SETTINGS])
def test_every_default_is_allowed_and_survives_being_written_out(table: dict[str, Setting]) -> None:
    for key, declared in table.items():
        assert key == declared.key
        assert declared.doc.endswith((".", "offered.")), key
        text = format_value(declared.default)
        if text or declared.kind is Kind.LIST:
            assert declared.parse(text) == declared.default, key


def test_topic_overrides_go_on_top_of_the_brokers_defaults() -> None:
    broker = BrokerConfig.of({"log.segment.bytes": "1000000", "log.cleanup.policy": "compact"})
    topic = broker.topic_defaults.overridden({"segment.bytes": "2000000", "retention.ms": "-1"})
    assert topic.segment_bytes == 2_000_000
    assert topic.retention_ms == -1
    assert topic.is_compacted
    assert not topic.is_deleted


@pytest.mark.parametrize(
    ("settings", "retention_ms"),
    [
        ({}, 604_800_000),
        ({"log.retention.hours": "1"}, 3_600_000),
        ({"log.retention.hours": "1", "log.retention.minutes": "2"}, 120_000),
        ({"log.retention.minutes": "2", "log.retention.ms": "5000"}, 5_000),
        ({"log.retention.hours": "-1"}, -1),
    ],
)
def test_the_finest_unit_of_retention_wins(settings: dict[str, str], retention_ms: int) -> None:
    assert BrokerConfig.of(settings).topic_defaults.retention_ms == retention_ms


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("segment.bytes", "many", "a whole number of 32 bits, 14 or more"),
        ("segment.bytes", "3000000000", "a whole number of 32 bits"),
        ("retention.ms", "-2", "-1 or more"),
        ("cleanup.policy", "shred", "delete and compact, each or none"),
        ("preallocate", "yes", "true or false"),
        ("min.cleanable.dirty.ratio", "1.5", "0 to 1"),
        ("segment.byte", "1", "such as segment.bytes"),
    ],
)
def test_a_bad_topic_value_names_key_value_and_what_is_allowed(key: str, value: str, allowed: str) -> None:
    with pytest.raises(ConfigError) as caught:
        TopicConfig().overridden({key: value})
    assert caught.value.key == key
    assert caught.value.value == value
    assert allowed in caught.value.allowed


def test_a_secret_is_not_shown_in_errors() -> None:
    secret = Setting(key="password", kind=Kind.PASSWORD, default=None, doc="", nullable=False)
    assert secret.shown("hunter2") == "[hidden]"
    assert secret.sensitive


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("log.cleaner.threads", "0"),
        ("max.connections.per.ip", "0"),
        ("num.replica.fetchers", "0"),
        ("log.retention.ms", "0"),
        ("log.retention.minutes", "0"),
        ("log.retention.hours", "0"),
        ("log.retention.ms", ""),
        ("log.cleaner.io.max.bytes.per.second", "1_000"),
    ],
)
def test_values_with_which_kafka_does_not_start(key: str, value: str) -> None:
    with pytest.raises(ConfigError) as caught:
        from_properties({key: value})
    assert (caught.value.key, caught.value.value) == (key, value)


def test_settings_that_do_not_fit_together_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"default\.replication\.factor=3"):
        BrokerConfig.of({"default.replication.factor": "3"})
    with pytest.raises(ConfigError, match=r"group\.min\.session\.timeout\.ms"):
        BrokerConfig.of({"group.min.session.timeout.ms": "20", "group.max.session.timeout.ms": "10"})
    with pytest.raises(ConfigError, match=r"-1, or at least socket\.request\.max\.bytes"):
        BrokerConfig.of({"queued.max.request.bytes": "1000"})
    assert BrokerConfig.of({"queued.max.request.bytes": "-1"}).queued_max_request_bytes == -1


def test_internal_topics_have_one_replica_by_default() -> None:
    config = BrokerConfig.of({})
    assert config.offsets_topic_replication_factor == 1
    assert config.transaction_state_log_replication_factor == 1
    assert config.transaction_state_log_min_isr == 1
