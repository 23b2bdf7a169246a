"""`millstream broker shutdown` on brokers of a cluster: each stops as by SIGTERM, and what stays is well."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from logd.storage.names import CLEAN_SHUTDOWN
from millstream.terminal.status import Status
from millstream.zookeeper.ensemble import Ensemble
from tests.faults.cluster.cluster import Cluster
from tests.millstream.invoking import On
from tests.support import depth
from tests.support.waiting import wait_for

ENABLE = "millstream.remote.shutdown.enable"
UNWILLING = 3
"""The broker that is not to be stopped from afar."""

pytestmark = depth.deep


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory, ensemble: Ensemble) -> Iterator[Cluster]:
    folder, zookeeper = tmp_path_factory.mktemp("shutdown"), f"{ensemble.connect_string}/shutdown"
    settings = {ENABLE.replace(".", "_"): "true", "controlled_shutdown_retry_backoff_ms": 60_000}
    with Cluster(folder, zookeeper, 4, of_one={UNWILLING: {ENABLE: "false"}}, **settings) as cluster:
        yield cluster
        cluster.assert_no_tracebacks()


@pytest.fixture
def cluster(brokers: Cluster) -> Cluster:
    """All of them are up, without a topic, whatever became of them before."""
    brokers.start_missing()
    on = On(brokers.bootstrap)
    for row in on.rows("topic", "list"):
        on.done("topic", "delete", row["topic"], "--yes")
    wait_for(lambda: not on.rows("topic", "list"))
    return brokers


def shutdown(cluster: Cluster, *arguments: object) -> tuple[int, list[Any], str]:
    """Shut brokers down without a question; return exit status, rows, and standard error."""
    ended = On(cluster.bootstrap)("broker", "shutdown", *arguments, "--yes", "-o", "jsonl")
    return ended.exit_code, [json.loads(line) for line in ended.stdout.splitlines()], ended.stderr


def results(rows: list[Any]) -> list[tuple[int, str]]:
    return [(row["broker"], row["result"]) for row in rows]


def is_running(cluster: Cluster) -> set[int]:
    return {id_ for id_, broker in cluster.brokers.items() if broker.is_running}


def test_it_hands_over_and_leaves(cluster: Cluster) -> None:
    on, topic = On(cluster.bootstrap), "handed-over"
    on.done("topic", "create", topic, "--replica-assignment", "1:2:3,2:3:1,3:1:2,1:3:2")
    wait_for(lambda: cluster.is_in_sync(topic))
    going = cluster.controller if cluster.controller in (1, 2) else 1
    stays = {1, 2, 3} - {going}
    listed = {row["id"]: row for row in on.rows("broker", "list")}
    led = Counter(state.leader_id for state in cluster.states(topic).values())
    assert {id_: row["partitions_led"] for id_, row in listed.items()} == {
        id_: led[id_] for id_ in (1, 2, 3, 4)
    }
    assert sum(row["controller"] for row in listed.values()) == 1

    status, rows, messages = shutdown(cluster, going, UNWILLING, "--force")
    assert (status, rows) == (Status.NOT_ALLOWED, [])
    assert f"broker {UNWILLING} does not take it" in messages
    assert is_running(cluster) == {1, 2, 3, 4}

    status, rows, _ = shutdown(cluster, going)
    assert status == Status.OK
    assert rows == [{"broker": going, "partitions_led": led[going], "result": "stopped", "error": None}]
    broker = cluster.brokers[going]
    assert broker.wait() == 0
    assert (broker.folder / "data" / CLEAN_SHUTDOWN).exists()
    assert "stops and leads" not in broker.log and "without handing over" not in broker.log
    for state in cluster.states(topic).values():
        assert state.leader_id in stays
        assert set(state.isr_nodes) == stays

    status, rows, messages = shutdown(cluster, 3 - going)
    assert (status, rows) == (Status.UNHEALTHY, [])
    assert f"4 partitions under min.insync.replicas ({topic}-0, " in messages
    assert is_running(cluster) == {*stays, 4}


def test_nobody_is_asked_behind_one_that_stays(cluster: Cluster) -> None:
    """Nobody shuts down after a broker that stays: it alone is in sync, and waits for another one."""
    on = On(cluster.bootstrap)
    on.done("topic", "create", "alone", "--replica-assignment", "1:3")
    wait_for(lambda: cluster.is_in_sync("alone"))
    assert cluster.brokers[3].stop() == 0
    wait_for(lambda: set(cluster.states("alone")[0].isr_nodes) == {1})

    status, rows, messages = shutdown(cluster, 2, 1, 4, "--force", "--timeout", 5)
    assert status == Status.PARTLY, messages
    assert results(rows) == [(2, "stopped"), (1, "failed"), (4, "not asked")]
    assert "1 of 3 have stopped: broker 1 stops, and is still in the cluster after 5 s" in messages
    assert cluster.brokers[2].wait() == 0
    assert is_running(cluster) == {1, 4}
    cluster.kill(1)
