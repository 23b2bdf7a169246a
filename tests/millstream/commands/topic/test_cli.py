"""`millstream topic` against a broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka_client import TopicPartition
from millstream.terminal.status import Status
from tests.millstream.invoking import On, produce
from tests.support.logd_process import LogdProcess


@pytest.fixture(scope="module")
def on(tmp_path_factory: pytest.TempPathFactory) -> Iterator[On]:
    with LogdProcess(tmp_path_factory.mktemp("logd"), {"num.partitions": "4"}) as process:
        yield On(process.bootstrap)


@pytest.fixture
def topic(on: On, request: pytest.FixtureRequest) -> str:
    name = str(request.node.name)
    on.done("topic", "create", name, "--partitions", 2, "--config", "retention.ms=7000")
    return name


def test_a_topics_life(on: On) -> None:
    created = on.done("topic", "create", "life", "other", "--config", "cleanup.policy=compact")
    assert created.stdout == ""
    assert "life: created" in created.stderr
    listed = {row["topic"]: row for row in on.rows("topic", "list")}
    assert listed["life"] == {
        "topic": "life",
        "partitions": 4,
        "replication_factor": 1,
        "internal": False,
    }
    on.done("topic", "alter", "life", "--partitions", 6)
    assert on.rows("topic", "describe", "life")[0]["partition_count"] == 6
    on.done("topic", "delete", "life", "other", "--yes")
    assert not {"life", "other"} & {row["topic"] for row in on.rows("topic", "list")}


def test_a_topic_is_described(on: On, topic: str) -> None:
    (row,) = on.rows("topic", "describe", topic)
    assert len(row.pop("topic_id")) == 36
    partitions = row.pop("partitions")
    assert row == {
        "topic": topic,
        "partition_count": 2,
        "replication_factor": 1,
        "internal": False,
        "configs": {"retention.ms": "7000"},
    }
    assert [(each["partition"], each["leader"], each["replicas"], each["isr"]) for each in partitions] == [
        (0, 1, [1], [1]),
        (1, 1, [1], [1]),
    ]
    table = on.done("topic", "describe", topic).stdout
    assert "retention.ms=7000" in table
    assert [line.split()[:3] for line in table.splitlines()[-2:]] == [[topic, "0", "1"], [topic, "1", "1"]]
    assert on.rows("topic", "describe", topic, "--under-replicated-partitions") == []


def test_offsets(on: On, topic: str) -> None:
    produce(on.bootstrap, TopicPartition(topic, 1), 1_000, 2_000, 3_000)
    assert [(row["earliest"], row["latest"]) for row in on.rows("topic", "offsets", topic)] == [
        (0, 0),
        (0, 3),
    ]
    (row,) = on.rows("topic", "offsets", f"{topic}:1", "--time", "latest")
    assert row["offset"] == 3
    (row,) = on.rows("topic", "offsets", f"{topic}:1", "--time", "2100-01-01T00:00:00")
    assert row["offset"] is None
    assert on("topic", "offsets", f"{topic}:7").exit_code == Status.NOT_FOUND


def test_a_topic_that_is_there_already(on: On, topic: str) -> None:
    again = on("topic", "create", topic)
    assert again.exit_code == Status.FAILED
    assert "millstream topic create: TOPIC_ALREADY_EXISTS" in again.stderr
    on.done("topic", "create", topic, "--if-not-exists")
    some = on("topic", "create", topic, "between")
    assert some.exit_code == Status.PARTLY
    assert f"1 of 2 failed: {topic}" in some.stderr
    on.done("topic", "delete", "between", "--yes")


def test_a_wrong_setting_names_the_nearest(on: On) -> None:
    refused = on("topic", "create", "wrong", "--config", "retenton.ms=1")
    assert refused.exit_code == Status.FAILED
    assert "retention.ms" in refused.stderr
    assert on("topic", "create", "wrong", "--config", "retention.ms").exit_code == Status.USAGE


def test_a_dry_run_does_nothing(on: On, topic: str) -> None:
    on.done("topic", "create", "never", "--dry-run")
    on.done("topic", "alter", topic, "--partitions", 9, "--dry-run")
    listed = {row["topic"]: row["partitions"] for row in on.rows("topic", "list")}
    assert "never" not in listed
    assert listed[topic] == 2


def test_nothing_is_deleted_unasked(on: On, topic: str) -> None:
    assert on("topic", "delete", topic).exit_code == Status.FAILED
    assert on("topic", "delete", topic, "away", "--yes").exit_code == Status.NOT_FOUND
    assert topic in {row["topic"] for row in on.rows("topic", "list")}
    on.done("topic", "delete", "away", "--yes", "--if-exists")


def test_replicas_are_assigned_by_hand(on: On) -> None:
    on.done("topic", "create", "by-hand", "--replica-assignment", "1,1,1")
    assert on.rows("topic", "describe", "by-hand")[0]["partition_count"] == 3
    both = on("topic", "create", "both", "--replica-assignment", "1", "--partitions", 1)
    assert both.exit_code == Status.USAGE
    assert on("topic", "create", "none", "--replica-assignment", "a").exit_code == Status.USAGE


def test_a_topic_that_is_not_there(on: On) -> None:
    described = on("topic", "describe", "away")
    assert described.exit_code == Status.NOT_FOUND
    assert "away" in described.stderr
