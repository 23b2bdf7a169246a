"""`millstream config` against a broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from millstream.terminal.status import Status
from tests.millstream.invoking import On
from tests.support.logd_process import LogdProcess


@pytest.fixture(scope="module")
def on(tmp_path_factory: pytest.TempPathFactory) -> Iterator[On]:
    with LogdProcess(tmp_path_factory.mktemp("logd"), {"log.segment.bytes": "7000000"}) as process:
        on = On(process.bootstrap)
        on.done("topic", "create", "t", "--config", "retention.ms=8000")
        yield on


def test_settings_come_with_source_and_default(on: On) -> None:
    rows = {row["key"]: row for row in on.rows("config", "describe", "topic", "t", "--all")}
    retention = rows["retention.ms"]
    assert (retention["value"], retention["source"]) == ("8000", "topic")
    segment = rows["segment.bytes"]
    assert (segment["value"], segment["source"]) == ("7000000", "broker, static")
    assert segment["default"] == "1073741824"
    assert rows["cleanup.policy"]["source"] == "default"
    named = on.rows("config", "describe", "topic", "t")
    assert "cleanup.policy" not in {row["key"] for row in named}
    assert [row["key"] for row in on.rows("config", "describe", "topic", "t", "--key", "cleanup.policy")] == [
        "cleanup.policy"
    ]


def test_settings_change_and_go(on: On) -> None:
    def value(key: str) -> tuple[str, str]:
        (row,) = on.rows("config", "describe", "topic", "t", "--key", key)
        return row["value"], row["source"]

    on.done("config", "alter", "topic", "t", "segment.bytes=2000000", "--append", "cleanup.policy=compact")
    assert value("segment.bytes") == ("2000000", "topic")
    assert set(value("cleanup.policy")[0].split(",")) == {"compact", "delete"}
    on.done("config", "alter", "topic", "t", "--subtract", "cleanup.policy=compact")
    assert value("cleanup.policy")[0] == "delete"
    on.done("config", "alter", "topic", "t", "segment.bytes=3000000", "--dry-run")
    assert value("segment.bytes") == ("2000000", "topic")
    on.done("config", "delete", "topic", "t", "segment.bytes", "cleanup.policy", "--yes")
    assert value("segment.bytes") == ("7000000", "broker, static")


def test_settings_of_brokers(on: On) -> None:
    on.done("config", "alter", "broker", "default", "log.retention.ms=90000000")
    rows = {row["key"]: row for row in on.rows("config", "describe", "broker", "1")}
    assert rows["log.retention.ms"]["value"] == "90000000"
    assert rows["log.retention.ms"]["source"] == "all brokers, dynamic"
    on.done("config", "delete", "broker", "default", "log.retention.ms", "--yes")
    assert on("config", "describe", "broker", "one").exit_code == Status.USAGE


@pytest.mark.parametrize("verb", ["alter", "describe"])
def test_a_wrong_key_names_the_nearest(on: On, verb: str) -> None:
    key = ["retenton.ms=1"] if verb == "alter" else ["--key", "retenton.ms"]
    refused = on("config", verb, "topic", "t", *key)
    assert refused.exit_code == (Status.FAILED if verb == "alter" else Status.NOT_FOUND)
    assert "retention.ms" in refused.stderr


def test_what_is_not_there(on: On) -> None:
    assert on("config", "describe", "topic", "away").exit_code == Status.NOT_FOUND
    assert on("config", "alter", "topic", "away", "retention.ms=1").exit_code == Status.NOT_FOUND
    assert on("config", "alter", "topic", "t").exit_code == Status.USAGE
    assert on("config", "alter", "topic", "t", "retention.ms").exit_code == Status.USAGE


def test_a_bad_value_is_named(on: On) -> None:
    refused = on("config", "alter", "topic", "t", "retention.ms=soon")
    assert refused.exit_code == Status.FAILED
    assert "soon" in refused.stderr
