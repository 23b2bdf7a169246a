"""The levels that `--log-level` names."""

from __future__ import annotations

import logging

import pytest

from kafka_client.errors import ConfigError
from kafka_client.logs.formats import LogFormat
from kafka_client.logs.levels import name_of, parse_levels
from kafka_client.logs.stderr import LogOptions


def test_levels_of_the_root_and_of_loggers() -> None:
    assert parse_levels([], "INFO") == {"root": logging.INFO}
    options = ["warn", "logd.api=DEBUG", "logd=Warning", "logd.api=TRACE"]
    assert parse_levels(options, "INFO") == {"root": 30, "logd.api": 5, "logd": 30}
    assert [name_of(level) for level in (60, 50, 30, 25, 5, 1)] == [
        "OFF",
        "FATAL",
        "WARN",
        "INFO",
        "TRACE",
        "ALL",
    ]


@pytest.mark.parametrize("option", ["LOUD", "logd=", "=INFO", "logd", ""])
def test_an_unknown_level_is_refused(option: str) -> None:
    with pytest.raises(ConfigError, match="LOGGER=LEVEL"):
        parse_levels([option], "INFO")


def test_options_reach_the_processes_of_several_brokers() -> None:
    options = LogOptions(["INFO", "logd=DEBUG"], LogFormat.JSON)
    expected = ["--log-level", "INFO", "--log-level", "logd=DEBUG", "--log-format", "json"]
    assert options.arguments() == expected
