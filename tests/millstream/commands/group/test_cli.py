"""`millstream group` against a broker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from kafka_client import TopicPartition
from millstream.terminal.status import Status
from tests.millstream.invoking import NOBODY, On, produce
from tests.support.logd_process import LogdProcess
from tests.support.waiting import wait_for


@pytest.fixture(scope="module")
def on(tmp_path_factory: pytest.TempPathFactory) -> Iterator[On]:
    # Records of 1970 are to stay.
    overrides = {"log.retention.ms": "-1"}
    with LogdProcess(tmp_path_factory.mktemp("logd"), overrides) as process:
        yield On(process.bootstrap)


@pytest.fixture
def topic(on: On, request: pytest.FixtureRequest) -> str:
    """Two partitions; in the first, records of 1, 2 and 3 s after 1970."""
    name = str(request.node.name)
    on.done("topic", "create", name, "--partitions", 2)
    produce(on.bootstrap, TopicPartition(name, 0), 1_000, 2_000, 3_000)
    return name


@contextmanager
def member(on: On, group: str, topic: str) -> Iterator[Consumer]:
    consumer = Consumer(
        {"bootstrap.servers": on.bootstrap, "group.id": group, "client.id": "reader", "log_level": 2}
    )
    consumer.subscribe([topic])

    def has_all() -> bool:
        consumer.poll(0.05)
        return len(consumer.assignment()) == 2

    wait_for(has_all)
    try:
        yield consumer
    finally:
        consumer.close()


def reset(on: On, group: str, topic: str, *how: object) -> dict[int, int]:
    """New offsets by partition, set and not only shown."""
    rows = on.rows("group", "reset-offsets", group, "--topic", topic, *how, "--execute")
    assert all((row["group"], row["topic"]) == (group, topic) for row in rows)
    return {row["partition"]: row["new_offset"] for row in rows}


def test_offsets_go_where_they_are_told_to(on: On, topic: str, tmp_path: Path) -> None:
    assert reset(on, "resets", topic, "--to-latest") == {0: 3, 1: 0}
    assert reset(on, "resets", topic, "--shift-by", "-2") == {0: 1, 1: 0}
    assert reset(on, "resets", topic, "--to-current") == {0: 1, 1: 0}
    assert reset(on, "resets", topic, "--to-offset", 2) == {0: 2, 1: 0}
    assert reset(on, "resets", topic, "--to-earliest") == {0: 0, 1: 0}
    assert reset(on, "resets", topic, "--to-datetime", "1970-01-01T00:00:01.500") == {0: 1, 1: 0}
    file = tmp_path / "offsets.csv"
    file.write_text(f"{topic},0,2\n")
    rows = on.rows("group", "reset-offsets", "resets", "--from-file", file, "--execute")
    assert [(row["partition"], row["new_offset"]) for row in rows] == [(0, 2)]
    rows = on.rows("group", "describe", "resets")
    assert [(row["partition"], row["current_offset"], row["log_end_offset"], row["lag"]) for row in rows] == [
        (0, 2, 3, 1),
        (1, 0, 0, 0),
    ]


def test_a_duration_goes_back_from_now(on: On, topic: str) -> None:
    assert reset(on, "durations", topic, "--by-duration", "PT1H30M") == {0: 3, 1: 0}
    assert reset(on, "durations", topic, "--by-duration", "P36500D") == {0: 0, 1: 0}


def test_without_execute_nothing_is_set(on: On, topic: str) -> None:
    shown = on.done("group", "reset-offsets", "dry", "--topic", topic, "--to-latest")
    assert "nothing was set" in shown.stderr
    assert on("group", "describe", "dry").exit_code == Status.NOT_FOUND


@pytest.mark.parametrize(
    "options",
    [
        ["--to-latest"],
        ["--topic", "t"],
        ["--topic", "t", "--to-latest", "--to-earliest"],
        ["--topic", "t", "--all-topics", "--to-latest"],
        ["--topic", "t", "--to-datetime", "yesterday"],
        ["--topic", "t", "--by-duration", "1h"],
    ],
    ids=" ".join,
)
def test_options_that_do_not_fit_are_told_without_a_cluster(options: list[str]) -> None:
    assert NOBODY("group", "reset-offsets", "g", *options).exit_code == Status.USAGE


def test_a_group_with_members(on: On, topic: str) -> None:
    with member(on, "members", topic):
        (row,) = on.rows("group", "members", "members")
        assert (row["client_id"], row["assignment"]) == ("reader", [f"{topic}-0", f"{topic}-1"])
        rows = on.rows("group", "describe", "members")
        assert [(each["partition"], each["client_id"]) for each in rows] == [(0, "reader"), (1, "reader")]
        (row,) = on.rows("group", "describe", "members", "--state")
        assert (row["state"], row["members"], row["coordinator"]) == ("Stable", 1, 1)
        refused = on("group", "reset-offsets", "members", "--topic", topic, "--to-latest", "--execute")
        assert refused.exit_code == Status.FAILED
        assert "Stop its consumers" in refused.stderr
        assert on("group", "delete", "members", "--yes").exit_code == Status.FAILED
    (row,) = [each for each in on.rows("group", "list") if each["group"] == "members"]
    assert (row["state"], row["protocol_type"]) == ("Empty", "consumer")


def test_groups_are_deleted(on: On, topic: str) -> None:
    reset(on, "gone", topic, "--to-latest")
    on.done("group", "delete", "gone", "--topic", f"{topic}:1", "--yes")
    assert [row["partition"] for row in on.rows("group", "describe", "gone")] == [0]
    assert on("group", "delete", "gone").exit_code == Status.FAILED
    some = on("group", "delete", "gone", "never-there", "--yes")
    assert some.exit_code == Status.PARTLY
    assert "never-there" in some.stderr
    assert "gone" not in {row["group"] for row in on.rows("group", "list")}
