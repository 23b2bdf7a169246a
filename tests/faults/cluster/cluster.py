"""Brokers as processes of their own that share one ZooKeeper.

    with Cluster(tmp_path, zookeeper) as cluster:
        cluster.create_topic("t")
        cluster.kill(cluster.controller)

With a `Network` everything between brokers, and between them and ZooKeeper, goes through it; clients reach
brokers as ever. On `Hosts` each is on the one called by its id. Ports are chosen beforehand and stay: a
broker that comes back is where clients look for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kafka_client.errors import ErrorCode
from kafka_client.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kafka_client.wire.messages.find_coordinator import FindCoordinatorRequest
from kafka_client.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tests.support.hosts import Hosts
from tests.support.logd_process import LogdProcess
from tests.support.network import Network
from tests.support.ports import free_port
from tests.support.raw_client import RawClient
from tests.support.tracebacks import assert_no_tracebacks
from tests.support.waiting import wait_for

SESSION_MS = 3000
READY = "logd ready at "
GROUP, TRANSACTION = 0, 1
"""Kinds of coordinators."""
REPLICAS = 3
ZOOKEEPER = "zookeeper"
"""Name of ZooKeeper as an end of a network."""
LINES_TOLD = 40
SETTINGS: dict[str, object] = {
    "zookeeper.session.timeout.ms": SESSION_MS,
    "default.replication.factor": REPLICAS,
    "min.insync.replicas": 2,
    "offsets.topic.replication.factor": REPLICAS,
    "transaction.state.log.replication.factor": REPLICAS,
    "transaction.state.log.num.partitions": 5,
}


class Cluster:
    """`brokers` by their ids; `of_one`: settings of single ones.

    As a context manager all are started, and killed in the end.
    """

    def __init__(
        self,
        folder: Path,
        zookeeper: str,
        count: int = 3,
        *,
        network: Network | Hosts | None = None,
        of_one: Mapping[int, Mapping[str, object]] | None = None,
        **settings: object,
    ) -> None:
        more = {key.replace("_", "."): value for key, value in settings.items()}
        self.brokers = {
            id_: LogdProcess(
                folder / str(id_),
                {
                    **SETTINGS,
                    **more,
                    **(of_one or {}).get(id_, {}),
                    "node.id": id_,
                    "zookeeper.connect": zookeeper,
                },
            )
            for id_ in range(1, count + 1)
        }
        self._in_turn = list(self.brokers.values())
        for id_, broker in self.brokers.items():
            broker.port = free_port()
            if isinstance(network, Network):
                broker.overrides.update(_through(network, id_, broker.port, zookeeper))
            elif network is not None:
                broker.host, broker.inside = network.address(id_), network.inside(id_)

    def __enter__(self) -> Self:
        try:
            self.start(*self.brokers)
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            print(self.report())
        self.end()

    def report(self) -> str:
        """Return what explains a failure: each broker's view of dead and out-of-sync brokers, and its last
        log lines. A broker that was cut off may report that all is well.
        """
        lines = []
        for id_, broker in self.brokers.items():
            lines += [f"broker {id_} {line}" for line in _seen_by(broker)]
        for id_, broker in self.brokers.items():
            lines += [f"broker {id_}:", *broker.log.splitlines()[-LINES_TOLD:]]
        return "\n".join(lines)

    def end(self) -> None:
        """Kill the brokers that still run."""
        for broker in self.brokers.values():
            if broker.is_running:
                broker.kill()

    @property
    def bootstrap(self) -> str:
        """All brokers, for clients."""
        return ",".join(broker.bootstrap for broker in self.brokers.values())

    # Faults

    def kill(self, *ids: int) -> None:
        """SIGKILL."""
        for id_ in ids:
            self.brokers[id_].kill()

    def start(self, *ids: int) -> None:
        """Start what is down, all at once, and wait until each has been told what it holds."""
        before = {id_: self.brokers[id_].log.count(READY) for id_ in ids}
        for id_ in ids:
            self.brokers[id_].spawn()
        for id_, times in before.items():
            broker = self.brokers[id_]
            wait_for(lambda broker=broker, n=times: not broker.is_running or broker.log.count(READY) > n)  # type: ignore[misc]
            assert broker.is_running, f"broker {id_} ended with {broker.returncode}:\n{broker.log}"

    def start_missing(self) -> None:
        """Start all that are down, and wait until they know of each other."""
        self.start(*(id_ for id_, broker in self.brokers.items() if not broker.is_running))
        wait_for(lambda: len(self.metadata().brokers) == len(self.brokers))

    def restart(self, id_: int) -> None:
        """SIGTERM, and start again."""
        assert self.brokers[id_].stop() == 0, self.brokers[id_].log
        self.start(id_)

    def stop(self) -> None:
        """Stop all by SIGTERM, all at once; each ends well."""
        for broker in self.brokers.values():
            broker.terminate()
        assert {id_: broker.wait() for id_, broker in self.brokers.items()} == dict.fromkeys(self.brokers, 0)

    def assert_no_tracebacks(self) -> None:
        """Check that no broker has logged a traceback."""
        for broker in self.brokers.values():
            assert_no_tracebacks(broker.log)

    # What is known

    def metadata(self, *topics: str) -> MetadataResponse:
        """Return the metadata by the first broker that answers, which is asked first the next time."""
        for broker in self._in_turn:
            try:
                response = metadata_of(broker, *topics)
            except OSError:
                continue
            if broker is not self._in_turn[0]:
                self._in_turn = [broker, *(each for each in self._in_turn if each is not broker)]
            return response
        raise AssertionError("no broker answers")

    def sees(self, broker: LogdProcess, *, dead: int) -> bool:
        """Return True if a broker knows that another one is not alive."""
        return dead not in {each.node_id for each in metadata_of(broker).brokers}

    @property
    def controller(self) -> int:
        """The broker that is the controller; waits until one is."""
        controller = -1

        def is_running() -> bool:
            nonlocal controller
            controller = self.metadata().controller_id
            return controller in self.brokers and self.brokers[controller].is_running

        wait_for(is_running)
        return controller

    def leader(self, topic: str, partition: int = 0) -> int:
        """Return the leader of a partition, once there is one."""
        leader = -1

        def is_running() -> bool:
            nonlocal leader
            states = self.states(topic)
            leader = states[partition].leader_id if partition in states else -1
            return leader in self.brokers and self.brokers[leader].is_running

        wait_for(is_running)
        return leader

    def coordinator(self, name: str, kind: int = GROUP) -> int:
        """Return the coordinator of a group or a transactional id, once there is one."""
        coordinator = -1

        def is_running() -> bool:
            nonlocal coordinator
            for broker in self.brokers.values():
                try:
                    with RawClient(broker.port, broker.host) as client:
                        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[name])
                        (answer,) = client.request(request, 4).coordinators
                except OSError:
                    continue
                coordinator = -1 if answer.error_code else answer.node_id
                return coordinator in self.brokers and self.brokers[coordinator].is_running
            return False

        wait_for(is_running)
        return coordinator

    def states(self, *topics: str) -> dict[int, Any]:
        """Return the state of each partition of one topic, as Metadata has it."""
        (topic,) = self.metadata(*topics).topics
        return {partition.partition_index: partition for partition in topic.partitions}

    def is_in_sync(self, topic: str) -> bool:
        """Return True if all replicas of all partitions are in sync."""
        states = self.states(topic).values()
        return bool(states) and all(
            state.leader_id >= 0 and set(state.isr_nodes) == set(state.replica_nodes) for state in states
        )

    def create_topic(self, name: str, partitions: int = 6, **configs: str) -> str:
        """Create a topic, on the controller's word; its name."""
        return self._create(name, configs, num_partitions=partitions, replication_factor=REPLICAS)

    def create_topic_on(self, name: str, *replicas: Sequence[int], **configs: str) -> str:
        """Create a topic of which each partition is on these brokers; its name."""
        assignments = [
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(ids))
            for index, ids in enumerate(replicas)
        ]
        return self._create(name, configs, num_partitions=-1, replication_factor=-1, assignments=assignments)

    def _create(self, name: str, configs: Mapping[str, str], **shape: Any) -> str:
        entries = [CreatableTopicConfig(name=key.replace("_", "."), value=v) for key, v in configs.items()]
        topic = CreatableTopic(name=name, configs=entries, **shape)
        wait_for(lambda: len(self.metadata().brokers) == len(self.brokers))
        controller = self.brokers[self.controller]
        with RawClient(controller.port, controller.host) as client:
            (created,) = client.request(CreateTopicsRequest(topics=[topic], timeout_ms=60_000), 7).topics
        assert created.error_code in (0, ErrorCode.TOPIC_ALREADY_EXISTS), created.error_message
        wait_for(lambda: self.is_in_sync(name))
        return name


def _through(network: Network, id_: int, port: int, zookeeper: str) -> dict[str, str]:
    """Settings by which a broker meets the others, and ZooKeeper, in this network."""
    inner = free_port()
    gate = network.gate(("127.0.0.1", inner), target=id_)
    servers, slash, chroot = zookeeper.partition("/")
    gates = [
        network.gate((host, int(zookeeper_port)), source=id_, target=ZOOKEEPER)
        for host, _, zookeeper_port in (server.partition(":") for server in servers.split(","))
    ]
    return {
        "listeners": f"PLAINTEXT://127.0.0.1:{port},BROKERS://127.0.0.1:{inner}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port},BROKERS://127.0.0.1:{gate}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BROKERS:PLAINTEXT",
        "inter.broker.listener.name": "BROKERS",
        "zookeeper.connect": ",".join(f"127.0.0.1:{each}" for each in gates) + slash + chroot,
    }


def _seen_by(broker: LogdProcess) -> Iterator[str]:
    """Yield the live brokers and the out-of-sync partitions, as one broker reports them."""
    try:
        metadata = metadata_of(broker)
    except OSError as error:
        yield f"answers nothing: {error}"
        return
    alive = sorted(each.node_id for each in metadata.brokers)
    yield f"sees brokers {alive}, controller {metadata.controller_id}"
    for topic in metadata.topics:
        for state in topic.partitions:
            if set(state.isr_nodes) != set(state.replica_nodes):
                yield f"sees of {topic.name}: {state}"


def metadata_of(broker: LogdProcess, *topics: str) -> MetadataResponse:
    """Return the metadata by one broker. Raises OSError."""
    topic_requests = [MetadataRequestTopic(name=topic) for topic in topics] or None
    with RawClient(broker.port, broker.host) as client:
        answer: MetadataResponse = client.request(MetadataRequest(topics=topic_requests), 12)
        return answer
