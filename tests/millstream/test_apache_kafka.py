"""Every noun against Apache Kafka, as against logd."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from kafka_client import TopicPartition
from millstream.terminal.status import Status
from tests.millstream.invoking import On, produce
from tests.support import java
from tests.support.apache_kafka import ApacheKafka
from tests.support.depth import deep
from tests.support.waiting import wait_for

pytestmark = [deep, java.needs_kafka]


@pytest.fixture(scope="module")
def on(tmp_path_factory: pytest.TempPathFactory) -> Iterator[On]:
    with ApacheKafka(tmp_path_factory.mktemp("kafka"), {"log.retention.ms": -1}) as kafka:
        yield On(kafka.bootstrap)


@pytest.fixture(scope="module")
def topic(on: On) -> str:
    on.done("topic", "create", "flights", "--partitions", 2, "--config", "segment.bytes=7000000")
    produce(on.bootstrap, TopicPartition("flights", 0), 1_000, 2_000, 3_000)
    return "flights"


def test_topics(on: On, topic: str) -> None:
    (row,) = on.rows("topic", "describe", topic)
    assert (row["partition_count"], row["configs"]) == (2, {"segment.bytes": "7000000"})
    assert topic in {each["topic"] for each in on.rows("topic", "list")}
    assert [each["latest"] for each in on.rows("topic", "offsets", topic)] == [3, 0]
    wrong = on("topic", "create", "wrong", "--config", "retenton.ms=1")
    assert wrong.exit_code == Status.FAILED
    assert "retention.ms?" in wrong.stderr
    on.done("topic", "create", "passing", "--dry-run")
    on.done("topic", "create", "passing")
    on.done("topic", "alter", "passing", "--partitions", 3)
    on.done("topic", "delete", "passing", "--yes")
    assert on("topic", "describe", "passing").exit_code == Status.NOT_FOUND


def test_health(on: On, topic: str) -> None:
    assert {row["status"] for row in on.rows("cluster", "health")} == {"ok"}
    on.done("topic", "create", "needy", "--config", "min.insync.replicas=2")
    assert {row["status"] for row in on.rows("cluster", "health")} == {"ok"}, "one replica is all there is"
    assert not list(on.rows("topic", "describe", "--under-min-isr-partitions"))
    assert "needy" in [row["topic"] for row in on.rows("topic", "describe", "--at-min-isr-partitions")]
    produce(on.bootstrap, TopicPartition("needy", 0), 1_000)
    on.done("topic", "delete", "needy", "--yes")


def test_a_broker_that_cannot_be_told_to_stop(on: On, topic: str) -> None:
    (row,) = on.rows("broker", "list")
    assert (row["id"], row["controller"], row["partitions_led"] > 0) == (1, True, True)
    ended = on("broker", "shutdown", 1, "--yes", "--force")
    assert ended.exit_code == Status.FAILED
    assert "broker 1 cannot be told to stop: it is no logd, or an older one" in ended.stderr
    assert on.rows("broker", "list") == [row]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_groups(on: On, topic: str, protocol: str) -> None:
    group = f"readers-{protocol}"
    on.done("group", "reset-offsets", group, "--topic", topic, "--to-offset", 1, "--execute")
    settings = {
        "bootstrap.servers": on.bootstrap,
        "group.id": group,
        "client.id": "reader",
        "group.protocol": protocol,
        "enable.auto.commit": False,
    }
    consumer = Consumer(settings)
    consumer.subscribe([topic])

    def has_all() -> bool:
        consumer.poll(0.05)
        return len(consumer.assignment()) == 2

    wait_for(has_all)
    rows = on.rows("group", "describe", group)
    assert [(row["partition"], row["current_offset"], row["lag"]) for row in rows] == [(0, 1, 2), (1, 0, 0)]
    assert {row["client_id"] for row in rows} == {"reader"}
    (row,) = on.rows("group", "members", group)
    assert row["assignment"] == [f"{topic}-0", f"{topic}-1"]
    assert on("group", "reset-offsets", group, "--all-topics", "--to-latest", "--execute").exit_code == 1
    consumer.close()
    assert on.rows("group", "describe", group, "--state")[0]["members"] == 0
    on.done("group", "reset-offsets", group, "--all-topics", "--shift-by", 1, "--execute")
    assert on.rows("group", "describe", group)[0]["lag"] == 1
    on.done("group", "delete", group, "--yes")
    assert on("group", "describe", group).exit_code == Status.NOT_FOUND


def test_settings(on: On) -> None:
    topic = "settings"
    on.done("topic", "create", topic, "--config", "segment.bytes=7000000")

    def value(*of: str) -> tuple[str, str, str]:
        (row,) = on.rows("config", "describe", *of)
        return row["value"], row["source"], row["default"]

    key = ("topic", topic, "--key", "segment.bytes")
    assert value(*key) == ("7000000", "topic", "1073741824")
    on.done("config", "alter", "topic", topic, "segment.bytes=8000000", "--dry-run")
    on.done("config", "alter", "topic", topic, "segment.bytes=8000000")
    wait_for(lambda: value(*key)[0] == "8000000")
    on.done("config", "delete", "topic", topic, "segment.bytes", "--yes")
    wait_for(lambda: value(*key)[1] == "default")
    on.done("config", "alter", "broker", "default", "log.cleaner.threads=2")
    threads = ("broker", "1", "--key", "log.cleaner.threads")
    wait_for(lambda: value(*threads) == ("2", "all brokers, dynamic", "1"))
    on.done("config", "alter", "group", "readers", "consumer.session.timeout.ms=50000")
    session = ("group", "readers", "--key", "consumer.session.timeout.ms")
    wait_for(lambda: value(*session)[:2] == ("50000", "group"))
    wrong = on("config", "alter", "topic", topic, "retenton.ms=1")
    assert wrong.exit_code == Status.FAILED
    assert "retention.ms?" in wrong.stderr


def test_partitions_and_log_folders(on: On, topic: str) -> None:
    assert [row["result"] for row in on.rows("partition", "elect", topic)] == ["not needed"] * 2
    on.done("partition", "reassign", f"{topic}:0=1", "--wait")
    assert on.rows("partition", "reassignments") == []
    refused = on("partition", "reassign", f"{topic}:0=2")
    assert refused.exit_code == Status.FAILED
    sizes = [row["size"] for row in on.rows("log-dirs", "describe", "--topic-list", topic, "--replicas")]
    assert sizes[0] > sizes[1] == 0


def test_the_cluster_and_transactions(on: On, topic: str, tmp_path: Path) -> None:
    cluster = json.loads(on.done("cluster", "describe", "-o", "json").stdout)
    assert (cluster["controller"], cluster["brokers"]) == (1, 1)
    assert on.rows("txn", "list") == []
    assert on("txn", "describe", "--transactional-id", "away").exit_code == Status.NOT_FOUND
