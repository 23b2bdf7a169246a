"""Brokers in one event loop that replicate between them by real connections.

Who leads a controller decides whose store is this process's memory, and each broker is told at once:
elections, ZooKeeper and the feed are tested elsewhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from kafka_client.errors import ConnectionClosed, KafkaError
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire import Message
from kafka_client.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResponsePartition,
    AlterPartitionResponseTopic,
)
from logd.broker.cluster.broker_login import BrokerLogin
from logd.broker.cluster.peer_connections import PeerConnections
from logd.broker.cluster.replication.assignment import Assignment
from logd.broker.cluster.replication.led_partitions import LedPartitions
from logd.broker.cluster.replication.replica_fetcher import FetcherSettings, FetchingBroker, ReplicaFetcher
from logd.broker.cluster.replication.replica_fetchers import ReplicaFetchers
from logd.broker.partition.partition import Partition
from logd.broker_server import BrokerServer
from logd.config.load import from_properties
from logd.metadata.controller.alter_partition import NewIsr
from logd.metadata.controller.core import Controller
from logd.metadata.controller.decision import Decision
from logd.metadata.controller.placement import Start
from logd.metadata.controller.topics import NewTopic
from logd.metadata.image import BrokerImage, Change, ClusterImage, Endpoint, PartitionImage, TopicImage

LISTENER = "PLAINTEXT"
TOPIC = "t"
TOPIC_ID = bytes(range(1, 17))
TP = TopicPartition(TOPIC, 0)


class Node:
    """A broker of the simulated cluster."""

    def __init__(self, cluster: Nodes, id_: int, folder: Path) -> None:
        self.cluster = cluster
        self.id = id_
        self.folder = folder
        self.epoch = 0
        self.is_up = False
        self.hears = True
        """False while the controller's changes of the partition do not reach this node."""

    async def start(self, *, registered: bool = True) -> None:
        """Start the broker. With ``registered`` False the other nodes do not know it before `register`."""
        config = from_properties(
            {
                "node.id": str(self.id),
                "log.dirs": str(self.folder),
                "listeners": f"{LISTENER}://127.0.0.1:0",
                **self.cluster.settings,
            }
        )
        self.server = BrokerServer(config.config)
        await self.server.start()
        broker = self.server.broker
        self.epoch = self.cluster.next_epoch()
        login = broker.broker_login = BrokerLogin("the cluster's secret", LISTENER)
        self.peers = PeerConnections(self.id, lambda: self.cluster.image.brokers, LISTENER, login)
        own = self.own
        self.leading = LedPartitions(
            self.cluster.image,
            self.cluster.ask_controller,
            own=own,
            now_ms=broker.now_ms,
            replica_lag_time_max_ms=self.cluster.lag_ms,
        )
        fetchers = ReplicaFetchers(
            lambda leader: ReplicaFetcher(
                leader,
                follower=FetchingBroker(
                    node_id=self.id,
                    broker_epoch=lambda: self.epoch,
                    truncations=broker.truncations,
                    discard=broker.housekeeping.discard,
                    now_ms=broker.now_ms,
                ),
                peers=self.peers,
                settings=FetcherSettings(
                    replica_fetch_wait_max_ms=self.cluster.fetch_wait_ms, replica_fetch_backoff_ms=20
                ),
            )
        )
        self.assignment = Assignment(self.id, self.leading, fetchers)
        broker.leading = self.leading
        self.is_up = True
        if registered:
            self.register()

    def register(self) -> None:
        """Register the broker with the controller, which tells the other nodes."""
        self.cluster.decide(lambda controller: controller.change_brokers(arrived=[self.registration()]))

    def own(self) -> tuple[int, int]:
        return self.id, self.epoch

    def registration(self) -> BrokerImage:
        port = self.server.broker.endpoint.port
        endpoint = Endpoint(LISTENER, "127.0.0.1", port, LISTENER)
        return BrokerImage(id=self.id, epoch=self.epoch, endpoints=(endpoint,))

    @property
    def partition(self) -> Partition:
        return self.server.broker.catalog.partitions[TP]

    async def stop(self) -> None:
        """Stop the broker and unregister it; its log stays on the disk."""
        if not self.is_up:
            return
        self.is_up = False
        await self.assignment.stop()
        await self.peers.close()
        await self.server.stop()
        self.cluster.decide(lambda controller: controller.change_brokers(departed=[self.id]))

    async def own_topic(self, configs: dict[str, str]) -> None:
        new = NewTopic(name=TOPIC, topic_id=TOPIC_ID, partitions=1, configs=configs, start=Start(0, 0))
        await self.server.broker.catalog.add(new)


class Nodes:
    """A cluster of brokers with a controller in the same process; use it as an async context manager.

    `lag_ms` is replica.lag.time.max.ms, `fetch_wait_ms` is replica.fetch.wait.max.ms.
    """

    def __init__(
        self, folder: Path, count: int = 3, *, lag_ms: int = 60_000, fetch_wait_ms: int = 50, **settings: str
    ) -> None:
        self.image = ClusterImage()
        self.controller = Controller(self.image, epoch=1)
        self.settings = {name.replace("_", "."): value for name, value in settings.items()}
        self.lag_ms = lag_ms
        self.fetch_wait_ms = fetch_wait_ms
        self.can_ask = True
        self.tells_one_by_one = False
        """True to send changes one by one, as when an update is too small for all of them."""
        self._epochs = 0
        self.nodes = {id_: Node(self, id_, folder / str(id_)) for id_ in range(1, count + 1)}

    def next_epoch(self) -> int:
        self._epochs += 1
        return self._epochs

    async def __aenter__(self) -> Self:
        for node in self.nodes.values():
            await node.start()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self.can_ask = False
        for node in self.nodes.values():
            await node.stop()

    async def create_topic(self, configs: dict[str, str] | None = None) -> None:
        """Create a topic of one partition, led by the first node, with a replica on each node."""
        for node in self.nodes.values():
            await node.own_topic(configs or {})
        topic = TopicImage(name=TOPIC, topic_id=TOPIC_ID, partitions=1, configs=configs or {})
        replicas = tuple(self.nodes)
        state = PartitionImage(replicas=replicas, isr=replicas, leader=replicas[0])
        self.apply([topic.as_change(), state.as_change(TP)])

    @property
    def state(self) -> PartitionImage:
        return self.image.partitions[TP]

    @property
    def leader(self) -> Node:
        return self.nodes[self.state.leader]

    def decide(self, decide: Callable[[Controller], Decision[Any]]) -> Any:
        """Let the controller decide, and send the changes to all nodes."""
        decision = decide(self.controller)
        self.apply(decision.changes)
        return decision.answer

    def apply(self, changes: list[Change]) -> None:
        for update in [[change] for change in changes] if self.tells_one_by_one else [changes]:
            self._take(update)

    def _take(self, changes: list[Change]) -> None:
        for change in changes:
            self.image.apply(change)
        state = self.image.partitions.get(TP)
        for node in self.nodes.values():
            if not (node.is_up and node.hears):
                continue
            if state is not None and TP in node.server.broker.catalog.partitions:
                node.assignment.assign(node.partition, state)
                node.leading.image_changed(changes)

    async def ask_controller(self, message: Message, *, lane: str) -> AlterPartitionResponse:
        if not self.can_ask:
            raise ConnectionClosed("there is no controller")
        assert isinstance(message, AlterPartitionRequest)
        requests = [
            NewIsr(
                tp=TopicPartition(TOPIC, each.partition_index),
                leader_epoch=each.leader_epoch,
                partition_epoch=each.partition_epoch,
                isr={broker.broker_id: broker.broker_epoch for broker in each.new_isr_with_epochs},
                topic_id=topic.topic_id,
            )
            for topic in message.topics
            for each in topic.partitions
        ]
        await asyncio.sleep(0)
        answers = self.decide(
            lambda controller: controller.alter_partition(message.broker_id, message.broker_epoch, requests)
        )
        partitions = []
        for request, answer in zip(requests, answers, strict=True):
            row = AlterPartitionResponsePartition(partition_index=request.tp.partition)
            if isinstance(answer, KafkaError):
                row.error_code = answer.code
            else:
                row.leader_id, row.leader_epoch = answer.leader, answer.leader_epoch
                row.isr, row.partition_epoch = list(answer.isr), answer.partition_epoch
            partitions.append(row)
        return AlterPartitionResponse(
            topics=[AlterPartitionResponseTopic(topic_id=TOPIC_ID, partitions=partitions)]
        )

    async def until(self, holds: Callable[[], bool], *, seconds: float = 60) -> None:
        async with asyncio.timeout(seconds):
            while not holds():  # noqa: ASYNC110 (of many things, and none tells)
                await asyncio.sleep(0.005)

    def are_equal(self) -> bool:
        """Return True if all running nodes have the same log, all of it committed."""
        logs = {(bytes_of(node), node.partition.high_watermark) for node in self.nodes.values() if node.is_up}
        ends = {node.partition.log_end_offset for node in self.nodes.values() if node.is_up}
        return len(logs) == 1 and ends == {next(iter(logs))[1]}


def bytes_of(node: Node) -> bytes:
    return b"".join(bytes(chunk) for chunk in node.partition.read_all())
