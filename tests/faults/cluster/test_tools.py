"""Kafka's own tools, and ours by their names, on three brokers of which one is killed.

What they take and print with one broker is in tests/millstream/kafka_tools; here it is replicas that change.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from kafka_client.errors import ErrorCode
from millstream.zookeeper.ensemble import Ensemble
from tests.faults.cluster.cluster import Cluster
from tests.millstream.kafka_tools.players import JavaTools, OurTools, Player
from tests.support import depth, java
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

SESSION_MS = 10_000
"""Who is killed is thought to be there for so long, which gives a tool time to start."""
SIDES = "leader", "follower"
PARTITION = re.compile(r"\tPartition: (\d+)\tLeader: (\S+)\tReplicas: (\S+)\tIsr: (\S+)\t")

pytestmark = depth.deep


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory, ensemble: Ensemble) -> Iterator[Cluster]:
    folder, zookeeper = tmp_path_factory.mktemp("tools"), f"{ensemble.connect_string}/tools"
    with Cluster(folder, zookeeper, zookeeper_session_timeout_ms=SESSION_MS) as cluster:
        yield cluster
        cluster.stop()
        cluster.assert_no_tracebacks()


@pytest.fixture
def cluster(brokers: Cluster) -> Iterator[Cluster]:
    """All of them are up again behind each test, whatever becomes of it."""
    yield brokers
    brokers.start_missing()


@dataclass(frozen=True)
class Tools:
    """Run against a cluster; `name` is whose they are."""

    name: str
    player: Player
    cluster: Cluster

    def __call__(self, tool: str, *arguments: object) -> str:
        """Run a tool that must end with 0, and return its output."""
        words = [f"kafka-{tool}", "--bootstrap-server", self.cluster.bootstrap, *map(str, arguments)]
        done = self.player.run(words, "")
        assert done.status == 0, (words, done)
        return done.stdout

    def topic(self, kind: str, assignment: str) -> str:
        """Created, and in sync; its name."""
        name = f"{self.name}-{kind}"
        self("topics", "--create", "--topic", name, "--replica-assignment", assignment)
        wait_for(lambda: self.cluster.is_in_sync(name))
        return name

    def described(self, *options: object) -> dict[int, tuple[str, str, set[str]]]:
        """Leader, replicas and ISR of partitions, as `kafka-topics --describe` shows them."""
        printed = self("topics", "--describe", *options)
        return {
            int(partition): (leader, replicas, set(isr.split(",")))
            for partition, leader, replicas, isr in PARTITION.findall(printed)
        }


@pytest.fixture(scope="module", params=[pytest.param("java", marks=java.needs_kafka), "ours"])
def player(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Player]]:
    with ExitStack() as stack:
        if request.param == "java":
            yield "java", stack.enter_context(JavaTools(tmp_path_factory.mktemp("java")))
        else:
            yield "ours", OurTools()


@pytest.fixture
def tools(cluster: Cluster, player: tuple[str, Player]) -> Tools:
    return Tools(*player, cluster)


def test_a_broker_is_missing_and_leads_again(cluster: Cluster, tools: Tools) -> None:
    topic = tools.topic("described", "1:2:3,2:3:1,3:1:2")
    assert tools.described("--topic", topic) == {
        0: ("1", "1,2,3", {"1", "2", "3"}),
        1: ("2", "2,3,1", {"1", "2", "3"}),
        2: ("3", "3,1,2", {"1", "2", "3"}),
    }
    assert api_versions(tools) == {1, 2, 3}
    cluster.kill(1)
    wait_for(lambda: cluster.states(topic)[0].leader_id == 2 and not is_in_isr(cluster, topic, 1))
    expected = {
        0: ("2", "1,2,3", {"2", "3"}),
        1: ("2", "2,3,1", {"2", "3"}),
        2: ("3", "3,1,2", {"2", "3"}),
    }
    assert tools.described("--topic", topic) == expected
    assert tools.described("--topic", topic, "--under-replicated-partitions") == expected
    assert tools.described("--topic", topic, "--at-min-isr-partitions") == expected
    assert tools.described("--topic", topic, "--unavailable-partitions") == {}
    assert tools.described("--topic", topic, "--under-min-isr-partitions") == {}
    assert api_versions(tools) == {2, 3}
    cluster.start(1)
    wait_for(lambda: cluster.is_in_sync(topic))
    assert tools.described("--topic", topic)[0][0] == "2"
    elect = "--election-type", "preferred", "--topic", topic, "--partition", 0
    assert (
        tools("leader-election", *elect)
        == f"Successfully completed leader election (PREFERRED) for partitions {topic}-0\n"
    )
    wait_for(lambda: cluster.leader(topic) == 1)
    assert tools("leader-election", *elect) == f"Valid replica already elected for partitions {topic}-0\n"


def test_an_unclean_leader_is_elected(cluster: Cluster, tools: Tools) -> None:
    """Nobody leads without the replica that is in sync, until an operator elects the other one."""
    topic = tools.topic("unclean", "1:2")
    cluster.kill(2)
    wait_for(lambda: not is_in_isr(cluster, topic, 2))
    cluster.kill(1)
    cluster.start(2)
    wait_for(lambda: cluster.states(topic)[0].leader_id == -1)
    assert set(tools.described("--topic", topic, "--unavailable-partitions")) == {0}
    output = tools("leader-election", "--election-type", "unclean", "--topic", topic, "--partition", 0)
    assert output == f"Successfully completed leader election (UNCLEAN) for partitions {topic}-0\n"
    wait_for(lambda: cluster.leader(topic) == 2)
    cluster.start(1)
    wait_for(lambda: cluster.is_in_sync(topic))


def _is_taken(raw: RawClient, topic: str, partition: int) -> bool:
    code: int = raw.produce(topic, [(1, None, b"x", ())] * 100, partition=partition).error_code
    assert code in (0, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return code == 0


def test_partitions_are_given_to_other_brokers(cluster: Cluster, tools: Tools, tmp_path: Path) -> None:
    topic = tools.topic("moved", "1:2,2:1")
    for partition in (0, 1):
        with RawClient(cluster.brokers[cluster.leader(topic, partition)].port) as raw:
            # Another broker may have said who leads before the leader itself was told.
            wait_for(lambda: _is_taken(raw, topic, partition))  # noqa: B023
    topics, plan = tmp_path / "topics.json", tmp_path / "plan.json"
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": topic}]}))
    output = tools(
        "reassign-partitions", "--generate", "--topics-to-move-json-file", topics, "--broker-list", "2,3"
    )
    current, proposed = (json.loads(line) for line in output.splitlines() if line.startswith("{"))
    assert [each["replicas"] for each in current["partitions"]] == [[1, 2], [2, 1]]
    replicas_by_partition = {each["partition"]: each["replicas"] for each in proposed["partitions"]}
    assert all(set(replicas) == {2, 3} for replicas in replicas_by_partition.values())
    plan.write_text(json.dumps(proposed))
    output = tools("reassign-partitions", "--execute", "--reassignment-json-file", plan)
    assert f"Successfully started partition reassignments for {topic}-0,{topic}-1\n" in output

    def is_complete() -> bool:
        verified = tools("reassign-partitions", "--verify", "--reassignment-json-file", plan)
        return all(
            f"Reassignment of partition {topic}-{each} is completed." in verified
            for each in replicas_by_partition
        )

    wait_for(is_complete)
    described = tools.described("--topic", topic)
    assert {
        each: list(map(int, state[1].split(","))) for each, state in described.items()
    } == replicas_by_partition
    wait_for(lambda: cluster.is_in_sync(topic))


def test_a_throttled_reassignment(cluster: Cluster, tools: Tools, tmp_path: Path) -> None:
    """Java's tool and ours print and set the same, and take it away when all has moved."""
    topic = tools.topic("throttled", "1:2,2:3")
    plan = tmp_path / "plan.json"
    plan.write_text(
        json.dumps(
            {
                "version": 1,
                "partitions": [
                    {"topic": topic, "partition": 0, "replicas": [2, 3]},
                    {"topic": topic, "partition": 1, "replicas": [2, 1, 3]},
                ],
            }
        )
    )
    plan_option = "--reassignment-json-file", plan
    output = tools("reassign-partitions", "--execute", *plan_option, "--throttle", 1_000_000)
    assert (
        "\nWarning: You must run --verify periodically, until the reassignment completes, to ensure the "
        "throttle is removed.\nThe inter-broker throttle limit was set to 1000000 B/s\n"
        f"Successfully started partition reassignments for {topic}-0,{topic}-1\n"
    ) in output
    assert throttles(tools, topic) == {
        "leader.replication.throttled.replicas": {"0:1", "0:2", "1:2", "1:3"},
        "follower.replication.throttled.replicas": {"0:3", "1:1"},
        **{
            f"{broker} {side}.replication.throttled.rate": {"1000000"}
            for broker in (1, 2, 3)
            for side in SIDES
        },
    }
    done = f"""\
Status of partition reassignment:
Reassignment of partition {topic}-0 is completed.
Reassignment of partition {topic}-1 is completed.

Clearing broker-level throttles on brokers 1,2,3
Clearing topic-level throttles on topic {topic}
"""
    verified: list[str] = []

    def is_complete() -> bool:
        verified.append(tools("reassign-partitions", "--verify", *plan_option))
        return "in progress" not in verified[-1]

    wait_for(is_complete)
    assert verified[-1].rstrip("\n") == done.rstrip("\n")
    assert throttles(tools, topic) == {}
    assert [state[1] for state in tools.described("--topic", topic).values()] == ["2,3", "2,1,3"]


def throttles(tools: Tools, topic: str) -> dict[str, set[str]]:
    """Return the throttles of the topic and of the brokers; those have the broker's id in front."""
    throttle_values: dict[str, set[str]] = {}
    for kind, name in (("topics", topic), *(("brokers", str(broker)) for broker in (1, 2, 3))):
        output = tools("configs", "--describe", "--entity-type", kind, "--entity-name", name)
        for key, value in re.findall(r"^  ([a-z.]+\.throttled\.[a-z]+)=(\S*) ", output, re.M):
            throttle_values[key if kind == "topics" else f"{name} {key}"] = set(value.split(","))
    return throttle_values


def test_a_reassignment_to_who_is_gone_is_called_off(cluster: Cluster, tools: Tools, tmp_path: Path) -> None:
    """Reassignment to a dead broker cannot end, so that there is time to see it and to cancel it."""
    victim = cluster.controller % len(cluster.brokers) + 1
    stay = sorted(set(cluster.brokers) - {victim})
    topic = tools.topic("called-off", ":".join(map(str, stay)))
    plan = tmp_path / "plan.json"
    everywhere = {"topic": topic, "partition": 0, "replicas": [*stay, victim]}
    plan.write_text(json.dumps({"version": 1, "partitions": [everywhere]}))
    cluster.kill(victim)
    output = tools("reassign-partitions", "--execute", "--reassignment-json-file", plan)
    assert f"Successfully started partition reassignment for {topic}-0\n" in output
    replicas = ",".join(map(str, [*stay, victim]))
    listed = tools("reassign-partitions", "--list")
    assert f"{topic}-0: replicas: {replicas}. adding: {victim}.\n" in listed, listed
    output = tools(
        "reassign-partitions", "--cancel", "--preserve-throttles", "--reassignment-json-file", plan
    )
    assert f"Successfully cancelled partition reassignment for: {topic}-0\n" in output
    assert tools("reassign-partitions", "--list") == "No partition reassignments found.\n"
    assert tools.described("--topic", topic)[0][1] == ",".join(map(str, stay))


def is_in_isr(cluster: Cluster, topic: str, broker: int) -> bool:
    """Return True if a broker is in the ISR of any of a topic's partitions."""
    return any(broker in state.isr_nodes for state in cluster.states(topic).values())


def api_versions(tools: Tools) -> set[int]:
    """Brokers whose versions are shown; each is at the address of its own."""
    ids: set[int] = set()
    for port, id_ in re.findall(
        r"^127\.0\.0\.1:(\d+) \(id: (\d+) rack: null", tools("broker-api-versions"), re.M
    ):
        assert tools.cluster.brokers[int(id_)].port == int(port)
        ids.add(int(id_))
    return ids
