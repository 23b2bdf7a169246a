"""Tests without a Java counterpart: former options, missing files, older brokers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_client.errors import ErrorCode, KafkaError
from millstream.kafka_tools.topics import describe
from tests.millstream.invoking import On, invoke
from tests.support.logd_process import LogdProcess

TOOLS = (
    "kafka-topics",
    "kafka-consumer-groups",
    "kafka-configs",
    "kafka-get-offsets",
    "kafka-log-dirs",
    "kafka-delete-records",
)


@pytest.fixture(scope="module")
def on(tmp_path_factory: pytest.TempPathFactory) -> Iterator[On]:
    with LogdProcess(tmp_path_factory.mktemp("logd")) as logd:
        on = On(logd.bootstrap)
        on.done("kafka-topics", "--create", "--topic", "a", "--partitions", 2)
        yield on


@pytest.mark.parametrize("tool", [tool for tool in TOOLS if tool != "kafka-consumer-groups"])
def test_zookeeper_is_refused_with_what_to_give_instead(tool: str) -> None:
    ended = invoke(tool, "--zookeeper", "localhost:2181", "--list", "--describe")

    assert ended.exit_code == 1
    assert "zookeeper is not a recognized option" in ended.stderr
    assert ended.stderr.endswith(
        "note: --zookeeper is no more: give --bootstrap-server HOST:PORT, the address of a broker\n"
    )


@pytest.mark.parametrize("tool", ["kafka-topics", "kafka-consumer-groups"])
def test_broker_list_is_bootstrap_server(on: On, tool: str) -> None:
    ended = invoke(tool, "--broker-list", on.bootstrap, "--list")

    assert ended.exit_code == 0
    assert ended.stderr == "note: --broker-list is --bootstrap-server today\n"


def test_offsets_by_broker_list(on: On) -> None:
    ended = invoke("kafka-get-offsets", "--broker-list", on.bootstrap, "--topic", "a")

    assert ended.stdout == "a:0:0\na:1:0\n"


def test_force_is_left_out(on: On) -> None:
    ended = on("kafka-configs", "--describe", "--topic", "a", "--force")

    assert ended.stdout == "Dynamic configs for topic a are:\n"
    assert ended.stderr == "note: --force is no more: nothing is asked anyway\n"


@pytest.mark.parametrize("tool", TOOLS)
def test_a_file_that_is_none_is_told(on: On, tool: str, tmp_path: Path) -> None:
    action = {
        "kafka-get-offsets": (),
        "kafka-delete-records": ("--offset-json-file", tmp_path),
        "kafka-configs": ("--describe", "--topic", "a"),
    }.get(tool, ("--describe", "--topic-list", "a") if tool == "kafka-log-dirs" else ("--list",))

    ended = on(tool, *action, "--command-config", tmp_path)

    assert ended.exit_code == (0 if tool == "kafka-consumer-groups" else 1)
    assert str(tmp_path) in ended.output


def test_controllers_are_not_asked() -> None:
    ended = invoke("kafka-configs", "--bootstrap-controller", "localhost:9093", "--describe", "--topic", "a")

    assert ended.exit_code == 1
    assert "give --bootstrap-server" in ended.stderr


def test_a_broker_that_is_not_there_is_told(on: On) -> None:
    ended = on("kafka-configs", "--alter", "--broker", 7, "--add-config", "log.cleaner.threads=2")

    assert ended.exit_code == 1
    assert ended.stderr.startswith("Error while executing config command with args '--alter --broker 7")


def test_topics_of_brokers_that_know_no_pages_of_partitions(on: On, monkeypatch: pytest.MonkeyPatch) -> None:
    async def pages(*arguments: Any) -> None:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)

    before = on.done("kafka-topics", "--describe", "--topic", "a").stdout
    monkeypatch.setattr(describe, "_pages", pages)
    after = on.done("kafka-topics", "--describe", "--topic", "a").stdout

    assert after == before.replace("Elr: \tLastKnownElr: ", "Elr: N/A\tLastKnownElr: N/A")
