"""`millstream partition` against a broker, which leads all there is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from millstream.terminal.status import Status
from tests.millstream.invoking import NOBODY, On
from tests.support.logd_process import LogdProcess


@pytest.fixture(scope="module")
def on(tmp_path_factory: pytest.TempPathFactory) -> Iterator[On]:
    with LogdProcess(tmp_path_factory.mktemp("logd")) as process:
        on = On(process.bootstrap)
        on.done("topic", "create", "t", "--partitions", 2)
        yield on


def test_elections(on: On) -> None:
    rows = on.rows("partition", "elect", "t")
    assert [(row["partition"], row["result"], row["error"]) for row in rows] == [
        (0, "not needed", None),
        (1, "not needed", None),
    ]
    assert on.rows("partition", "elect", "--all-topic-partitions") == []
    assert on("partition", "elect", "t", "--election-type", "unclean").exit_code == Status.FAILED
    on.done("partition", "elect", "t:1", "--election-type", "unclean", "--yes")
    assert on("partition", "elect").exit_code == Status.USAGE
    assert on("partition", "elect", "t:5").exit_code == Status.NOT_FOUND


def test_a_partition_may_go_where_it_is(on: On, tmp_path: Path) -> None:
    (row,) = on.rows("partition", "reassign", "t:0=1", "--wait")
    assert (row["replicas"], row["new_replicas"]) == ([1], [1])
    file = tmp_path / "moves.json"
    moves = [{"topic": "t", "partition": 1, "replicas": [1], "log_dirs": ["any"]}]
    file.write_text(json.dumps({"version": 1, "partitions": moves}))
    on.done("partition", "reassign", "--reassignment-json-file", file)
    assert on.rows("partition", "reassignments") == []


def test_a_throttle_is_set_and_taken_away(on: On) -> None:
    without_wait = on.done("partition", "reassign", "t:0=1", "--throttle", 1000)
    assert without_wait.stderr == "the throttle stays: millstream partition unthrottle t\n"
    assert throttles(on) == {
        "leader.replication.throttled.replicas": "0:1",
        "leader.replication.throttled.rate": "1000",
        "follower.replication.throttled.rate": "1000",
    }
    on.done("partition", "unthrottle", "t")
    assert throttles(on) == {}
    with_wait = on.done("partition", "reassign", "t:0=1", "--throttle", 1000, "--wait")
    assert with_wait.stderr == ""
    assert throttles(on) == {}
    assert on("partition", "reassign", "t:0", "--cancel", "--throttle", 1000).exit_code == Status.USAGE


def throttles(on: On) -> dict[str, str]:
    rows = [*on.rows("config", "describe", "topic", "t"), *on.rows("config", "describe", "broker", 1)]
    return {row["key"]: row["value"] for row in rows if ".throttled." in row["key"] and row["value"]}


def test_what_is_refused(on: On, tmp_path: Path) -> None:
    refused = on("partition", "reassign", "t:0=2")
    assert refused.exit_code == Status.FAILED
    assert "no such broker is registered" in refused.stderr
    on.done("partition", "reassign", "t:0=2", "--dry-run")
    some = on("partition", "reassign", "t:0=2", "t:1=1")
    assert some.exit_code == Status.PARTLY
    nothing = on("partition", "reassign", "t:0", "--cancel")
    assert nothing.exit_code == Status.FAILED
    assert "NO_REASSIGNMENT_IN_PROGRESS" in nothing.stderr
    file = tmp_path / "moves.json"
    file.write_text("{}")
    assert on("partition", "reassign", "--reassignment-json-file", file).exit_code == Status.USAGE


@pytest.mark.parametrize("move", ["t=1", "t:0", "t:a=1", "t:0=one", "t:0,1=1"])
def test_a_move_that_cannot_be_read_is_told_without_a_cluster(move: str) -> None:
    assert NOBODY("partition", "reassign", move).exit_code == Status.USAGE
