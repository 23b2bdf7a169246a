"""`millstream cluster` against a broker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from kafka_client.wire import ApiKey
from logd.metadata.journal_store import FILE_NAME
from millstream.commands.cluster.cli import app
from millstream.terminal.status import Status
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.topics import create_topic


@pytest.fixture(scope="module")
def logd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogdProcess]:
    with LogdProcess(tmp_path_factory.mktemp("logd"), {"broker.rack": "r1", "node.id": "7"}) as process:
        yield process


def run(logd: LogdProcess, *arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments, "-b", logd.bootstrap])


def test_the_cluster_and_its_brokers(logd: LogdProcess) -> None:
    cluster = json.loads(run(logd, "describe", "-o", "json").stdout)
    assert (cluster["controller"], cluster["brokers"], cluster["topics"]) == (7, 1, 0)
    brokers = json.loads(run(logd, "brokers", "-o", "json").stdout)
    assert brokers == [{"id": 7, "host": "127.0.0.1", "port": logd.port, "rack": "r1", "controller": True}]


def test_what_brokers_speak(logd: LogdProcess) -> None:
    rows = [json.loads(line) for line in run(logd, "api-versions", "-o", "jsonl").stdout.splitlines()]
    produce = next(row for row in rows if row["api"] == "Produce")
    assert (produce["broker"], produce["key"]) == (7, ApiKey.PRODUCE)
    assert produce["max_version"] >= 11


def test_a_broker_that_is_not_there(logd: LogdProcess) -> None:
    result = run(logd, "api-versions", "--broker", "9")
    assert result.exit_code == Status.NOT_FOUND
    assert "there is no broker 9: the cluster has 7" in result.stderr


@deep
def test_nobody_listens() -> None:
    result = CliRunner().invoke(app, ["describe", "-b", "127.0.0.1:1"])
    assert result.exit_code == Status.UNREACHABLE
    assert "127.0.0.1:1" in result.stderr
    assert "--bootstrap-server" in result.stderr


@deep
def test_a_move_is_asked_for(tmp_path: Path) -> None:
    """Refuse without a terminal and --yes, before connecting to ZooKeeper."""
    unreachable = ("--zookeeper", "127.0.0.1:1/kafka", "--override", "zookeeper.connection.timeout.ms=100")
    with LogdProcess(tmp_path, {"node.id": 7}) as logd:
        create_topic(logd, "t")
        move = ("move-to-zookeeper", "--log-dirs", str(tmp_path / "data"), *unreachable)
        running = CliRunner().invoke(app, [*move, "--node-id", "7", "--yes"])
        assert (running.exit_code, "stop the broker first" in running.stderr) == (Status.FAILED, True)
        assert logd.stop() == 0
    other = CliRunner().invoke(app, [*move, "--yes"])
    assert (other.exit_code, "belongs to node 7, not to node 1" in other.stderr) == (Status.FAILED, True)
    unconfirmed = CliRunner().invoke(app, [*move, "--node-id", "7"])
    assert unconfirmed.exit_code == Status.FAILED
    assert "Move the metadata of 1 topics of broker 7 to 127.0.0.1:1/kafka?" in unconfirmed.stderr
    assert "--yes" in unconfirmed.stderr
    nobody = CliRunner().invoke(app, [*move, "--node-id", "7", "--yes"])
    assert (nobody.exit_code, "no ZooKeeper at 127.0.0.1:1/kafka" in nobody.stderr) == (Status.FAILED, True)
    without = CliRunner().invoke(app, ["move-to-zookeeper", "--log-dirs", str(tmp_path / "data"), "--yes"])
    assert (without.exit_code, "zookeeper.connect" in without.stderr) == (Status.USAGE, True)
    assert (tmp_path / "data" / FILE_NAME).exists()
