"""Broker 1 of a cluster of four, in the test's process: its image is built by hand, the other brokers are not
there. Requests go to it without a socket, as from a client of one of two listeners.
"""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from kafka_client.topic_partition import TopicPartition
from kafka_client.wire import Message, decode, decode_response_header, encode_request, response_class
from logd.api.dispatch.dispatch import serve
from logd.api.request.context import RequestContext
from logd.broker.broker import Broker
from logd.config.broker import BrokerConfig
from logd.config.listeners import Endpoint as Listener
from logd.metadata.image import BrokerImage, Change, Endpoint, PartitionImage, replicas_offline

T = TypeVar("T")

EXTERNAL = Listener("EXTERNAL", "out1", 9092)
INTERNAL = Listener("INTERNAL", "in1", 9093)
TOPIC = "flights"


def broker_image(broker: int, *, listeners: tuple[str, ...] = ("EXTERNAL", "INTERNAL")) -> BrokerImage:
    """Return the image of broker N of rack rN, with the listeners outN:9092 and inN:9093."""
    addresses = {"EXTERNAL": (f"out{broker}", 9092), "INTERNAL": (f"in{broker}", 9093)}
    return BrokerImage(
        id=broker,
        epoch=100 + broker,
        rack=f"r{broker}",
        endpoints=tuple(Endpoint(name, *addresses[name], "PLAINTEXT") for name in listeners),
    )


STATES = {
    0: PartitionImage(replicas=(1, 2, 3), isr=(1, 2, 3), leader=1, leader_epoch=5),
    1: PartitionImage(replicas=(2, 1, 4), isr=(2, 1), leader=2, leader_epoch=6),
    2: PartitionImage(replicas=(3, 2, 1), isr=(3, 2), leader=3, leader_epoch=7, adding=(2,), removing=(1,)),
    3: PartitionImage(replicas=(4,), isr=(4,), leader=-1, leader_epoch=8),
    4: PartitionImage(replicas=(2, 3), isr=(3,), leader=3, leader_epoch=9),
    5: PartitionImage(replicas=(1, 2), isr=(2,), leader=2, leader_epoch=10),
}
"""Broker 4 is dead, and broker 3 has only the listener INTERNAL; partition 4 is in a folder of broker 2 that
failed, partition 5 in one of broker 1. Broker 1 leads 0, follows 1 and 2, and holds none of 3 and 4.
"""

ALIVE = (broker_image(1), broker_image(2), broker_image(3, listeners=("INTERNAL",)))


class Cluster:
    """A broker of the cluster in this process: ``broker`` is broker 1, ``loop`` its event loop."""

    def __init__(self, path: Path) -> None:
        self.loop = asyncio.new_event_loop()
        self.broker = Broker(BrokerConfig.of({"log.dirs": str(path), "node.id": "1", "broker.rack": "r1"}))
        self.run(self.broker.start())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the broker's loop and return its result."""
        return self.loop.run_until_complete(work)

    def apply(self, *changes: Change) -> None:
        """Apply changes to the node's image and let the catalog follow."""
        for change in changes:
            self.broker.image.apply(change)
        self.broker.catalog.views_changed()

    def join(self) -> None:
        """Let the node join the cluster as broker 1."""
        self.run(self.broker.catalog.create(TOPIC, len(STATES), {}))
        self.apply(*(broker.as_change() for broker in ALIVE))
        self.apply(*(state.as_change(TopicPartition(TOPIC, index)) for index, state in STATES.items()))
        self.apply(replicas_offline(2, [TopicPartition(TOPIC, 4)]))
        self.broker.controller_changed(2)
        topic = self.broker.catalog.topics[TOPIC]
        for index, state in STATES.items():
            partition = topic.partitions[index]
            assert partition is not None
            partition.is_leader, partition.leader_epoch = state.leader == 1, state.leader_epoch
            if 1 not in state.replicas or index == 5:
                del self.broker.catalog.partitions[partition.tp]
                topic.partitions[index] = None

    def ask(self, message: Message, version: int, endpoint: Listener = EXTERNAL) -> Any:
        """Send a request to a listener and return the decoded response."""
        frame = self.ask_raw(encode_request(message, version, 7, "client")[4:], endpoint)
        correlation_id, pos = decode_response_header(message.API_KEY, version, frame[4:])
        assert correlation_id == 7
        return decode(response_class(message.API_KEY), version, frame[4:], pos)

    def ask_raw(self, request: bytes, endpoint: Listener = EXTERNAL) -> bytes:
        """Serve a request without its length prefix; return the response with its length prefix.

        Who asks by INTERNAL has logged in as a broker.
        """
        context = RequestContext(self.broker, endpoint=endpoint, is_broker=endpoint is INTERNAL)
        return self.run(self._serve(request, context))

    async def _serve(self, request: bytes, context: RequestContext) -> bytes:
        answer: Any = serve(memoryview(request), 0, len(request), context)
        if inspect.isawaitable(answer):
            answer = await answer
        pieces = answer if isinstance(answer, list) else [answer]
        return b"".join(
            piece if isinstance(piece, bytes) else os.pread(piece.fd, piece.length, piece.position)
            for piece in pieces
        )

    def stop(self) -> None:
        """Stop the broker."""
        self.run(self.broker.stop())
        self.loop.close()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Cluster]:
    """Start a standalone broker."""
    started = Cluster(tmp_path)
    yield started
    started.stop()


@pytest.fixture
def cluster(node: Cluster) -> Cluster:
    """Start broker 1 of the cluster."""
    node.join()
    return node


@pytest.fixture(scope="session")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Return a joined cluster that is shared by tests that only read."""
    started = Cluster(tmp_path_factory.mktemp("standing"))
    started.join()
    yield started
    started.stop()
