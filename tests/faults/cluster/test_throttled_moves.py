"""kafka-reassign-partitions with throttles: what Java's tool prints and sets on three brokers of Apache Kafka
ours prints and sets there too, and both do on three of logd.

Copying at a thousand bytes a second does not end while anybody looks; then the throttle is lifted.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from kafka_client import Admin, Client, ResourceType
from kafka_client.admin.configs import DEFAULT_CONFIG
from millstream.zookeeper.ensemble import Ensemble
from tests.faults.cluster.cluster import Cluster
from tests.millstream.kafka_tools.players import JavaTools, OurTools, Player
from tests.millstream.kafka_tools.settled import Settled
from tests.support import depth, java
from tests.support.kafka_nodes import KafkaNodes
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

BATCHES, BATCH_BYTES = 10, 60_000
SETTINGS = {"replica.fetch.max.bytes": 65_536}
"""A batch at a time: a throttle is passed by one answer, and waited for then."""
SLOW, SLOWER, QUICK = 1_000, 900, 1_000_000_000
TOPIC_KEYS = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"
BROKER_KEYS = "leader.replication.throttled.rate", "follower.replication.throttled.rate"

ASSIGNMENTS = {"moved": "1:2,2:3,1:2", "other": "3"}
PLANS: Mapping[str, tuple[str, Mapping[int, Sequence[int]]]] = {
    # One moves, one gets a third replica, one only another order, which is done at once.
    "first": ("moved", {0: [2, 3], 1: [2, 1, 3], 2: [2, 1]}),
    "otherwise": ("moved", {0: [1, 3], 1: [2, 1, 3]}),
    "other": ("other", {0: [1]}),
    "back": ("moved", {2: [1, 2]}),
}
STEPS = (
    ("execute", "first", "--throttle", SLOW),
    ("verify", "first"),
    ("list",),
    ("execute", "other", "--throttle", SLOW),
    ("execute", "other", "--additional", "--throttle", SLOWER),
    ("verify", "other"),
    ("execute", "otherwise", "--additional", "--throttle", SLOW),
    ("list",),
    ("cancel", "other", "--preserve-throttles"),
    ("verify", "other"),
    ("execute", "otherwise", "--additional", "--throttle", QUICK),
    ("wait",),
    ("verify", "otherwise", "--preserve-throttles"),
    ("verify", "otherwise"),
    ("verify", "other"),
    ("execute", "back", "--throttle", -1),
    ("execute", "back", "--throttle", 0),
    ("cancel", "back"),
)

Printed = tuple[int, str, str]
"""Exit status, stdout, stderr."""

pytestmark = [depth.deep, java.needs_kafka]


@dataclass(frozen=True)
class Place:
    """A cluster's brokers, by their ports, and how a tool is run there."""

    ports: Mapping[int, int]
    settles: bool

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self.ports.values())

    def settled(self, player: Player) -> Player:
        """Return a player that waits for the controller's changes on all of Apache Kafka's brokers."""
        if self.settles:
            for port in self.ports.values():
                player = Settled(player, f"127.0.0.1:{port}")
        return player


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with KafkaNodes(tmp_path_factory.mktemp("kafka"), SETTINGS) as nodes:
        yield Place({id_: broker.port for id_, broker in nodes.brokers.items()}, settles=True)


@pytest.fixture(scope="module")
def logd(tmp_path_factory: pytest.TempPathFactory, ensemble: Ensemble) -> Iterator[Place]:
    folder, zookeeper = tmp_path_factory.mktemp("logd"), f"{ensemble.connect_string}/throttled"
    settings = {key.replace(".", "_"): value for key, value in SETTINGS.items()}
    with Cluster(folder, zookeeper, min_insync_replicas=1, **settings) as cluster:
        wait_for(lambda: len(cluster.metadata().brokers) == len(cluster.brokers))
        yield Place({id_: broker.port for id_, broker in cluster.brokers.items()}, settles=False)


@pytest.fixture(scope="module")
def players(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Player]]:
    with ExitStack() as stack:
        yield {
            "java": stack.enter_context(JavaTools(tmp_path_factory.mktemp("java"))),
            "ours": OurTools(),
        }


@dataclass(frozen=True)
class StepResult:
    """Output of a step, and the throttles after it."""

    step: tuple[object, ...]
    printed: Printed | None
    throttles: dict[str, dict[str, str | None]]


class Moving:
    """A player's topics in one place, and the results of its steps."""

    def __init__(self, place: Place, name: str, player: Player, folder: Path) -> None:
        self._place = place
        self._name = name
        self._player = place.settled(player)
        self._folder = folder
        for topic, assignment in ASSIGNMENTS.items():
            self._create(self._own(topic), assignment)

    def _own(self, topic: str) -> str:
        return f"{self._name}-{topic}"

    def _create(self, topic: str, assignment: str) -> None:
        made = self._run("topics", "--create", "--topic", topic, "--replica-assignment", assignment)
        assert made[0] == 0, made
        for index, replicas in enumerate(assignment.split(",")):
            port = self._place.ports[int(replicas.split(":")[0])]
            with RawClient(port) as client:
                for number in range(BATCHES):
                    record = (number, None, bytes(BATCH_BYTES), ())
                    wait_for(partial(_is_taken, client, topic, index, record))

    def _run(self, tool: str, *arguments: object) -> Printed:
        words = [f"kafka-{tool}", "--bootstrap-server", self._place.bootstrap, *map(str, arguments)]
        done = self._player.run(words, "")
        stdout, stderr = (text.replace(f"{self._name}-", "") for text in (done.stdout, done.stderr))
        return done.status, re.sub(r'"/[^"]+"', '"/data"', stdout), stderr  # the brokers' log directories

    def play(self) -> list[StepResult]:
        """Return the result of each step."""
        return [StepResult(step, self._step(*step), self._throttles()) for step in STEPS]

    def _step(self, action: str, plan: str = "", *options: object) -> Printed | None:
        if action == "wait":
            wait_for(lambda: not asyncio.run(self._under_way()))
            return None
        file = ("--reassignment-json-file", self._plan(plan)) if plan else ()
        return self._run("reassign-partitions", f"--{action}", *file, *options)

    def _plan(self, name: str) -> Path:
        topic, moves = PLANS[name]
        listed = [
            {"topic": self._own(topic), "partition": index, "replicas": replicas}
            for index, replicas in moves.items()
        ]
        path = self._folder / f"{name}.json"
        path.write_text(json.dumps({"version": 1, "partitions": listed}))
        return path

    async def _under_way(self) -> int:
        async with Client(self._place.bootstrap) as client:
            return len(await Admin(client).list_partition_reassignments())

    def _throttles(self) -> dict[str, dict[str, str | None]]:
        return asyncio.run(self._asked_throttles())

    async def _asked_throttles(self) -> dict[str, dict[str, str | None]]:
        named = [(self._own(topic), topic, ResourceType.TOPIC, TOPIC_KEYS) for topic in ASSIGNMENTS]
        named += [(str(id_), str(id_), ResourceType.BROKER, BROKER_KEYS) for id_ in self._place.ports]
        throttles = {}
        async with Client(self._place.bootstrap) as client:
            for name, shown, kind, keys in named:
                entries = await Admin(client).describe_configs(name, kind, keys=keys)
                throttles[shown] = {
                    key: entry.value
                    for key, entry in sorted(entries.items())
                    if entry.source != DEFAULT_CONFIG
                }
        return throttles


def _is_taken(client: RawClient, topic: str, index: int, record: tuple[int, None, bytes, tuple[()]]) -> bool:
    return bool(client.produce(topic, [record], partition=index).error_code == 0)


@pytest.fixture(scope="module")
def javas_on_kafka(
    kafka: Place, players: Mapping[str, Player], tmp_path_factory: pytest.TempPathFactory
) -> list[StepResult]:
    return Moving(kafka, "java", players["java"], tmp_path_factory.mktemp("plans")).play()


def test_java_shows_what_a_throttle_is(javas_on_kafka: list[StepResult]) -> None:
    """Java's copying is throttled, and throttles are removed; the other tests could not compare anything
    else.
    """
    by_step = {result.step: result for result in javas_on_kafka}
    printed = {step: result.printed[1] for step, result in by_step.items() if result.printed is not None}
    assert "moved-0 is still in progress." in printed["verify", "first"]
    assert "moved-0: replicas: 1,3,2. adding: 3. removing: 2." in printed["list",]
    preserved = by_step["verify", "otherwise", "--preserve-throttles"].throttles
    assert set(preserved["1"].values()) == {str(QUICK)}
    cleared = by_step["verify", "otherwise"].throttles
    assert cleared["1"] == cleared["moved"] == {} != cleared["other"]
    assert not any(javas_on_kafka[-1].throttles.values())


def test_ours_on_kafka(
    javas_on_kafka: list[StepResult], kafka: Place, players: Mapping[str, Player], tmp_path: Path
) -> None:
    for ours, javas in zip(
        Moving(kafka, "ours", players["ours"], tmp_path).play(), javas_on_kafka, strict=True
    ):
        assert ours == javas


@pytest.mark.parametrize("name", ["java", "ours"])
def test_on_logd(
    javas_on_kafka: list[StepResult], logd: Place, players: Mapping[str, Player], tmp_path: Path, name: str
) -> None:
    for here, on_kafka in zip(
        Moving(logd, name, players[name], tmp_path).play(), javas_on_kafka, strict=True
    ):
        assert here == on_kafka
