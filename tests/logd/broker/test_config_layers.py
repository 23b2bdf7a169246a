"""The layers of a broker's settings."""

from __future__ import annotations

import pytest

from kafka_client.errors import ErrorCode, KafkaError
from logd.broker.topics.config_layers import ALL_BROKERS, ConfigLayers


def test_changed_values_that_are_not_allowed_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    """Changed values that are not allowed do not end the start: an earlier version or another broker
    accepted them.
    """
    started_with = {"log.cleaner.threads": "2"}
    own = {"log.cleaner.threads": "0", "log.retention.ms": "0", "somebody.elses": "x"}
    layers = ConfigLayers(1, started_with, {"1": own, ALL_BROKERS: {"log.retention.ms": "7000"}, "2": own})
    with pytest.raises(KafkaError) as refused:
        layers.effective()
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    config = layers.allowed().effective()
    assert (config.log_cleaner_threads, config.topic_defaults.retention_ms) == (2, 7000)
    messages = [record.getMessage() for record in caplog.records]
    assert [line.rpartition(": ")[0].rpartition(": ")[2] for line in messages] == [
        "log.cleaner.threads=0",
        "log.retention.ms=0",
    ]
