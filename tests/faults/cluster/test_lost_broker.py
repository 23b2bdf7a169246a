"""Output of the commands, and of Kafka's own tools, for a cluster that has lost a broker."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from millstream.terminal.status import Status
from millstream.zookeeper.ensemble import Ensemble
from tests.faults.cluster.cluster import Cluster
from tests.millstream.invoking import On
from tests.millstream.kafka_tools.players import JavaTools
from tests.support import java
from tests.support.depth import deep
from tests.support.waiting import wait_for

LOST = 1
TOPICS = {"alone": [1], "pair": [1, 2], "others": [2, 3], "trio": [3, 2, 1]}
"""Topics of one partition, with its replicas. `min.insync.replicas` is 2, of `alone` 1."""
FILTERED = {
    "--under-replicated-partitions": ["pair", "trio"],
    "--under-min-isr-partitions": ["alone", "pair"],
    "--at-min-isr-partitions": ["alone", "others", "trio"],
    "--unavailable-partitions": ["alone"],
}
"""By option, the topics that are shown once the broker is lost."""
WELL = {
    "brokers": ("ok", []),
    "controller": ("ok", []),
    "log-dirs": ("ok", []),
    "offline-partitions": ("ok", []),
    "under-min-isr-partitions": ("ok", []),
    "under-replicated-partitions": ("ok", []),
    "reassignments": ("ok", []),
}


def health(on: On, status: Status) -> dict[str, tuple[str, list[str]]]:
    """Status and names by check."""
    ended = on("cluster", "health", "-o", "json")
    assert ended.exit_code == status, ended.output
    return {row["check"]: (row["status"], row["names"]) for row in json.loads(ended.stdout)}


def are_in_sync(cluster: Cluster) -> bool:
    return all(map(cluster.is_in_sync, TOPICS))


@pytest.fixture(scope="module")
def on(tmp_path_factory: pytest.TempPathFactory, ensemble: Ensemble) -> Iterator[On]:
    """Three brokers, of which one has been away, and another one is lost."""
    zookeeper = f"{ensemble.connect_string}/lost-broker"
    settings = {"auto_leader_rebalance_enable": "false"}
    with Cluster(tmp_path_factory.mktemp("lost-broker"), zookeeper, **settings) as cluster:
        on = On(cluster.bootstrap)
        wait_for(lambda: len(cluster.metadata().brokers) == len(cluster.brokers))
        for name, replicas in TOPICS.items():
            config = f"min.insync.replicas={min(len(replicas), 2)}"
            placed = ":".join(map(str, replicas))
            on.done("topic", "create", name, "--replica-assignment", placed, "--config", config)
        wait_for(lambda: are_in_sync(cluster))
        assert health(on, Status.OK) == {**WELL, "preferred-leaders": ("ok", [])}
        cluster.kill(3)
        wait_for(lambda: cluster.leader("trio") == 2)
        cluster.start(3)
        wait_for(lambda: are_in_sync(cluster))
        assert health(on, Status.OK) == {**WELL, "preferred-leaders": ("warning", ["trio-0"])}
        cluster.kill(LOST)
        wait_for(lambda: len(cluster.states("trio")[0].isr_nodes) == 2 and cluster.leader("pair") == 2)
        wait_for(lambda: cluster.states("alone")[0].leader_id == -1)
        yield on


def test_health(on: On) -> None:
    assert health(on, Status.UNHEALTHY) == {
        **WELL,
        "brokers": ("failed", ["1"]),
        "offline-partitions": ("failed", ["alone-0"]),
        "under-min-isr-partitions": ("failed", ["alone-0", "pair-0"]),
        "under-replicated-partitions": ("failed", ["pair-0", "trio-0"]),
        "preferred-leaders": ("warning", ["pair-0", "trio-0"]),
    }
    table = on("cluster", "health")
    assert table.exit_code == Status.UNHEALTHY
    assert "under-replicated-partitions" in table.stdout
    assert "2 of 4: pair-0, trio-0" in table.stdout
    assert table.stderr.startswith("millstream cluster health: not well: brokers, offline-partitions")
    plain = on("cluster", "health", "-o", "plain").stdout.splitlines()
    assert plain[0] == "brokers\tfailed\t2 there (2, 3), 1 missing: 1\tstart those missing"


@deep
@pytest.mark.parametrize("option", FILTERED)
def test_partitions_that_are_looked_for(on: On, option: str) -> None:
    rows = on.rows("topic", "describe", option)
    assert [row["topic"] for row in rows] == FILTERED[option]
    shown = on.done("kafka-topics", "--describe", option).stdout.splitlines()
    assert sorted(line.split("\t")[1] for line in shown) == [f"Topic: {name}" for name in FILTERED[option]]


def test_some_of_them_together(on: On) -> None:
    rows = on.rows("topic", "describe", "--unavailable-partitions", "--under-replicated-partitions")
    assert [row["topic"] for row in rows] == ["alone", "pair", "trio"]
    assert on.rows("topic", "describe", "others", "--under-replicated-partitions") == []


@deep
@java.needs_javac
def test_as_kafkas_tool_prints_them(on: On, tmp_path: Path) -> None:
    servers = ("--bootstrap-server", on.bootstrap)
    together = [[*pair] for pair in itertools.combinations(FILTERED, 2)]
    with JavaTools(tmp_path) as tools:
        for options in ([], *([each] for each in FILTERED), *together):
            words = ["--describe", *options]
            ours = on("kafka-topics", *words)
            theirs = tools.run(["kafka-topics", *servers, *words], "")
            # The Java tool prints topics in the order of a HashMap, ours sorts them.
            assert ours.exit_code == theirs.status, options
            assert sorted(ours.stdout.splitlines()) == sorted(theirs.stdout.splitlines()), options
