"""The controller's feed, against brokers that refuse, forget and go away."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from kafka_client.errors import ConnectionClosed, ErrorCode, KafkaError, MalformedMessage
from kafka_client.wire import Message
from kafka_client.wire.private.cluster_update import ClusterUpdateRequest, ClusterUpdateResponse
from logd.broker.cluster.controller.publisher import Publisher, request_of, update_of
from logd.metadata.feed.inbox import Inbox
from logd.metadata.image import BrokerImage, Change, ClusterImage, TopicImage, broker_gone


def topic(name: str) -> Change:
    return TopicImage(name=name, topic_id=name.encode() * 16, partitions=1).as_change()


class Brokers:
    """All brokers, each with the image that it received. Tests replace `answer` to let one fail."""

    def __init__(self, *ids: int) -> None:
        self.images = {id_: ClusterImage() for id_ in ids}
        self.inboxes = {id_: Inbox(image) for id_, image in self.images.items()}
        for inbox in self.inboxes.values():
            inbox.registered(7)
        self.updates: list[tuple[int, ClusterUpdateRequest]] = []
        self.answer: Callable[[int, ClusterUpdateRequest], ClusterUpdateResponse] = self.take
        self.is_sent = asyncio.Event()

    async def request(self, broker: int, message: Message, *, lane: str = "") -> ClusterUpdateResponse:
        assert isinstance(message, ClusterUpdateRequest)
        self.updates.append((broker, message))
        self.is_sent.set()
        await asyncio.sleep(0)
        return self.answer(broker, message)

    def take(self, broker: int, message: ClusterUpdateRequest) -> ClusterUpdateResponse:
        try:
            for change in self.inboxes[broker].take(update_of(message)):
                self.images[broker].apply(change)
        except KafkaError as error:
            return ClusterUpdateResponse(error_code=error.code, error_message=error.message)
        return ClusterUpdateResponse()


class Cluster:
    """A controller and its brokers."""

    def __init__(self, *ids: int) -> None:
        self.image = ClusterImage()
        self.brokers = Brokers(*ids)
        self.resigned = asyncio.Event()
        self.publisher = Publisher(1, 5, self.image, self.brokers, self.resigned)
        self.change(*(BrokerImage(id=id_, epoch=7).as_change() for id_ in ids))

    def change(self, *changes: Change) -> None:
        for change in changes:
            self.image.apply(change)
        self.publisher.publish(changes)

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not holds():
                self.brokers.is_sent.clear()
                if not holds():
                    waiting = asyncio.ensure_future(self.brokers.is_sent.wait())
                    await asyncio.wait([waiting], timeout=0.05)
                    waiting.cancel()

    def all_know(self, *names: str) -> bool:
        return all(image.topics.keys() == set(names) for image in self.brokers.images.values())


def run(test: Callable[[Cluster], Awaitable[None]], *ids: int) -> None:
    async def main() -> None:
        cluster = Cluster(*ids)
        try:
            await test(cluster)
        finally:
            await cluster.publisher.close()

    asyncio.run(main())


def test_all_brokers_are_told() -> None:
    async def test(cluster: Cluster) -> None:
        cluster.change(topic("a"))
        await cluster.until(lambda: cluster.all_know("a"))
        cluster.change(topic("b"))
        await cluster.until(lambda: cluster.all_know("a", "b"))
        assert cluster.publisher.statistics()["brokers"] == 2

    run(test, 1, 2)


def test_a_mistake_costs_a_feed_one_round(caplog: pytest.LogCaptureFixture) -> None:
    async def test(cluster: Cluster) -> None:
        def mistaken(broker: int, message: ClusterUpdateRequest) -> ClusterUpdateResponse:
            cluster.brokers.answer = cluster.brokers.take
            raise RuntimeError("a mistake")

        cluster.brokers.answer = mistaken
        cluster.change(topic("a"))
        cluster.change(topic("b"))
        await cluster.until(lambda: cluster.all_know("a", "b"))
        async with asyncio.timeout(60):
            await cluster.publisher.wait_until_received(1)

    run(test, 1)
    assert "the feed of broker 1: unexpected RuntimeError('a mistake')" in caplog.text


def test_one_that_cannot_be_reached_hears_it_later_and_holds_up_nobody() -> None:
    async def test(cluster: Cluster) -> None:
        def away(broker: int, message: ClusterUpdateRequest) -> ClusterUpdateResponse:
            if broker == 2:
                raise ConnectionClosed("away")
            return cluster.brokers.take(broker, message)

        cluster.brokers.answer = away
        cluster.change(topic("a"))
        await cluster.until(lambda: "a" in cluster.brokers.images[1].topics)
        assert not cluster.brokers.images[2].topics
        cluster.brokers.answer = cluster.brokers.take
        await cluster.until(lambda: cluster.all_know("a"))

    run(test, 1, 2)


def test_an_answer_that_is_lost_is_asked_for_again() -> None:
    async def test(cluster: Cluster) -> None:
        def lost(broker: int, message: ClusterUpdateRequest) -> ClusterUpdateResponse:
            cluster.brokers.take(broker, message)
            cluster.brokers.answer = cluster.brokers.take
            raise ConnectionClosed("away")

        cluster.brokers.answer = lost
        cluster.change(topic("a"))
        await cluster.until(lambda: len(cluster.brokers.updates) == 2)
        (_, first), (_, second) = cluster.brokers.updates
        assert first == second
        assert cluster.all_know("a")

    run(test, 1)


def test_one_that_has_forgotten_is_told_everything() -> None:
    async def test(cluster: Cluster) -> None:
        cluster.change(topic("a"))
        await cluster.until(lambda: cluster.all_know("a"))
        cluster.brokers.images[1] = ClusterImage()
        cluster.brokers.inboxes[1] = Inbox(cluster.brokers.images[1])
        cluster.brokers.inboxes[1].registered(7)
        cluster.change(topic("b"))
        await cluster.until(lambda: cluster.all_know("a", "b"))

    run(test, 1)


def test_one_that_has_started_anew_gets_a_feed_of_its_own() -> None:
    async def test(cluster: Cluster) -> None:
        cluster.change(topic("a"))
        await cluster.until(lambda: cluster.all_know("a"))
        cluster.brokers.inboxes[1].registered(8)
        cluster.change(BrokerImage(id=1, epoch=8).as_change())
        await cluster.until(lambda: cluster.brokers.inboxes[1].is_complete)
        assert cluster.brokers.updates[-1][1].broker_epoch == 8
        cluster.change(broker_gone(1))
        assert cluster.publisher.statistics()["brokers"] == 0

    run(test, 1)


def test_a_controller_that_is_over_is_told_so() -> None:
    async def test(cluster: Cluster) -> None:
        cluster.brokers.answer = lambda broker, message: ClusterUpdateResponse(
            error_code=ErrorCode.STALE_CONTROLLER_EPOCH
        )
        async with asyncio.timeout(60):
            await cluster.resigned.wait()

    run(test, 1)


def test_an_update_travels() -> None:
    inbox = Inbox(ClusterImage())
    inbox.registered(7)

    async def test(cluster: Cluster) -> None:
        await cluster.until(lambda: bool(cluster.brokers.updates))
        (_, message) = cluster.brokers.updates[0]
        assert request_of(update_of(message)) == message
        message.changes = b"[1]"
        with pytest.raises(MalformedMessage, match="an update of the cluster"):
            update_of(message)

    run(test, 1)
