"""Options that older introductions teach: taken with a note of today's form, or refused with what to give."""

from __future__ import annotations

import pytest

from millstream.kafka_tools import broker_api_versions
from millstream.kafka_tools.console import console_consumer, console_producer
from millstream.kafka_tools.options.arguments import Options
from millstream.kafka_tools.performance import consumer_performance
from millstream.kafka_tools.reassign_partitions import cli as reassign_partitions
from tests.millstream.kafka_tools.players import OurTools


@pytest.mark.parametrize(
    ("options", "old", "today"),
    [
        (console_producer.OPTIONS, "broker-list", "bootstrap-server"),
        (console_consumer.OPTIONS, "whitelist", "include"),
        (consumer_performance.OPTIONS, "broker-list", "bootstrap-server"),
        (broker_api_versions.OPTIONS, "broker-list", "bootstrap-server"),
    ],
)
def test_taken_as_the_option_of_today(options: Options, old: str, today: str) -> None:
    notes: list[str] = []

    values = options.parse([f"--{old}", "value"], notes.append)

    assert values.text(today) == "value"
    assert notes == [f"note: --{old} is --{today} today"]


def test_the_new_consumer_is_the_only_one() -> None:
    notes: list[str] = []

    values = console_consumer.OPTIONS.parse(["--new-consumer", "--topic", "a"], notes.append)

    assert values.text("topic") == "a"
    assert notes == ["note: --new-consumer is no more: there is no other one"]


@pytest.mark.parametrize(
    "tool",
    [
        "kafka-console-producer",
        "kafka-console-consumer",
        "kafka-consumer-perf-test",
        "kafka-leader-election",
        "kafka-reassign-partitions",
    ],
)
def test_zookeeper_is_refused(tool: str) -> None:
    result = OurTools().run([tool, "--zookeeper", "localhost:2181"], "")

    assert result.status == 1
    assert "note: --zookeeper is no more: give --bootstrap-server" in result.stderr


def test_the_preferred_replica_election() -> None:
    result = OurTools().run(["kafka-leader-election", "--preferred-replica-election"], "")

    assert result.status == 1
    assert result.stderr.splitlines() == [
        "note: --preferred-replica-election is --election-type preferred today",
        "Missing required option(s): bootstrap-server",
    ]


def test_reassignments_keep_their_broker_list() -> None:
    values = reassign_partitions.OPTIONS.parse(["--broker-list", "0,1"], lambda text: None)

    assert values.text("broker-list") == "0,1"
