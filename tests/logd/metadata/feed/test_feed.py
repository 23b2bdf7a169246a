"""Both ends of the feed, with a network between them that loses, repeats and delays."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.topic_partition import TopicPartition
from logd.metadata.feed import outbox as outboxes
from logd.metadata.feed.inbox import Inbox
from logd.metadata.feed.outbox import Outbox
from logd.metadata.feed.update import Update
from logd.metadata.image import (
    BrokerImage,
    Change,
    ClusterImage,
    PartitionImage,
    TopicImage,
    replicas_offline,
    user_configs,
)
from tests.support import depth


def topic(name: str, id_: int, partitions: int = 2) -> Change:
    return TopicImage(name=name, topic_id=bytes([id_] * 16), partitions=partitions).as_change()


def partition(name: str, index: int, leader: int, epoch: int) -> Change:
    state = PartitionImage(
        replicas=(1, 2), isr=(1, 2), leader=leader, leader_epoch=epoch, partition_epoch=epoch
    )
    return state.as_change(TopicPartition(name, index))


def broker(id_: int, epoch: int) -> Change:
    return BrokerImage(id=id_, epoch=epoch).as_change()


class Ends:
    """A controller with its image, and a broker."""

    def __init__(self) -> None:
        self.there = ClusterImage()
        self.here = ClusterImage()
        self.inbox = Inbox(self.here)
        self.inbox.registered(7)
        self.outbox = Outbox(1, 1, 7, self.there.as_changes)
        self.sent: list[Update] = []
        self.epoch = 1

    def change(self, *changes: Change) -> None:
        for change in changes:
            self.there.apply(change)
        self.outbox.add(changes)

    def restart(self) -> None:
        """Register the broker again, and let the controller see it."""
        self.inbox.registered(self.inbox.broker_epoch + 1)
        self.outbox = Outbox(1, self.epoch, self.inbox.broker_epoch, self.there.as_changes)

    def take_over(self, epoch: int) -> None:
        """Another controller, which has read the same from the store."""
        self.epoch = epoch
        self.outbox = Outbox(2, epoch, self.inbox.broker_epoch, self.there.as_changes)

    def deliver(self, update: Update) -> None:
        self.sent.append(update)
        try:
            for change in self.inbox.take(update):
                self.here.apply(change)
        except KafkaError as error:
            begins = error.code is ErrorCode.INVALID_UPDATE_VERSION
            self.outbox.failed(update.number, must_begin=begins)
        else:
            self.outbox.delivered(update.number)

    def settle(self) -> None:
        while (update := self.outbox.next()) is not None:
            self.deliver(update)

    def agree(self) -> bool:
        return facts_of(self.here) == facts_of(self.there)


def facts_of(image: ClusterImage) -> object:
    configs = {name: configs for name, configs in image.broker_configs.items() if configs}
    users, producer_ids = image.user_configs, image.next_producer_id
    return image.topics, image.partitions, image.brokers, configs, users, image.offline, producer_ids


def test_a_snapshot_and_then_what_changes() -> None:
    ends = Ends()
    ends.change(topic("a", 1), partition("a", 0, 1, 0), broker(1, 7))
    ends.settle()
    assert ends.inbox.is_complete
    assert ends.agree()
    ends.change(partition("a", 0, 2, 1))
    update = ends.outbox.next()
    assert update is not None
    assert list(update.changes) == [partition("a", 0, 2, 1)]


def test_an_update_that_came_twice_counts_once() -> None:
    ends = Ends()
    ends.settle()
    ends.change(topic("a", 1))
    update = ends.outbox.next()
    assert update is not None
    assert ends.inbox.take(update) == [topic("a", 1)]
    assert ends.inbox.take(update) == []


def test_the_controller_before_is_not_heard_any_more() -> None:
    ends = Ends()
    ends.settle()
    ends.change(topic("a", 1))
    late = ends.outbox.next()
    assert late is not None
    ends.take_over(2)
    ends.settle()
    with pytest.raises(KafkaError) as raised:
        ends.inbox.take(late)
    assert raised.value.code is ErrorCode.STALE_CONTROLLER_EPOCH


def test_what_was_sent_to_the_life_before_is_refused() -> None:
    ends = Ends()
    ends.settle()
    ends.change(topic("a", 1))
    late = ends.outbox.next()
    assert late is not None
    ends.inbox.registered(8)
    with pytest.raises(KafkaError) as raised:
        ends.inbox.take(late)
    assert raised.value.code is ErrorCode.STALE_BROKER_EPOCH
    assert not ends.inbox.is_complete


def test_a_gap_has_the_controller_begin_again() -> None:
    ends = Ends()
    ends.settle()
    ends.change(topic("a", 1))
    ends.inbox.registered(7)  # as a broker that has lost its memory
    ends.settle()
    assert ends.sent[-1].begins
    assert ends.agree()


def test_a_broker_that_does_not_answer_is_not_remembered_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outboxes, "WAITING_MAX", 3)
    ends = Ends()
    ends.settle()
    for n in range(1, 6):
        ends.change(topic(f"t{n}", n))
        assert ends.outbox.waiting <= 3
    ends.settle()
    assert ends.sent[-1].begins
    assert ends.agree()


def test_a_snapshot_in_parts_counts_when_it_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outboxes, "CHANGES_PER_UPDATE", 2)
    ends = Ends()
    ends.change(*(topic(f"t{n}", n + 1) for n in range(5)))
    first = ends.outbox.next()
    assert first is not None
    ends.deliver(first)
    assert not ends.inbox.is_complete
    assert not ends.here.topics
    ends.change(topic("t1", 20))  # meanwhile
    ends.settle()
    assert ends.agree()


def test_a_topic_made_anew_while_nobody_listened() -> None:
    ends = Ends()
    ends.change(topic("a", 1), partition("a", 0, 1, 0), partition("a", 1, 1, 0))
    ends.settle()
    ends.outbox = Outbox(1, 2, 7, ends.there.as_changes)
    ends.change({"type": "topic-deleted", "name": "a"}, topic("a", 2), partition("a", 0, 1, 0))
    ends.settle()
    assert ends.agree()


NAMES = st.sampled_from("abc")
CHANGES = st.one_of(
    st.builds(topic, NAMES, st.integers(1, 3)),
    st.builds(lambda name: {"type": "topic-deleted", "name": name}, NAMES),
    st.builds(partition, NAMES, st.integers(0, 1), st.integers(1, 2), st.integers(0, 3)),
    st.builds(broker, st.integers(1, 2), st.integers(7, 9)),
    st.builds(user_configs, NAMES, st.sampled_from(({}, {"SCRAM-SHA-256": "a"}))),
    st.builds(lambda id_: {"type": "broker-gone", "id": id_}, st.integers(1, 2)),
    st.builds(
        lambda id_, name, index: replicas_offline(id_, [TopicPartition(name, index)]),
        st.integers(1, 2),
        NAMES,
        st.integers(0, 1),
    ),
    st.builds(
        lambda name, value: {"type": "broker-configs", "broker": name, "configs": {"x": value}},
        st.sampled_from(["", "1"]),
        st.sampled_from("12"),
    ),
    st.builds(lambda n: {"type": "producer-ids", "next": n}, st.integers(0, 9)),
)


def is_decided(image: ClusterImage, change: Change) -> bool:
    """Return True if a controller could decide this change now: its topic, broker and partitions exist, and
    no topic of another id has the name of one that it creates.
    """
    match change["type"]:
        case "partition":
            return change["topic"] in image.topics
        case "replicas-offline":
            partitions = [
                TopicPartition(name, i) for name, indexes in change["partitions"].items() for i in indexes
            ]
            return change["broker"] in image.brokers and all(tp in image.partitions for tp in partitions)
        case "topic":
            topic_image = image.topics.get(change["name"])
            return topic_image is None or topic_image.topic_id.hex() == change["id"]
    return True


@settings(max_examples=depth.times(400))
@given(st.data())
def test_they_agree_in_the_end_whatever_the_network_does(data: st.DataObject) -> None:
    ends, epoch = Ends(), 1
    for _ in range(data.draw(st.integers(1, 30))):
        match data.draw(st.sampled_from(["change", "deliver", "again", "restart", "take over"])):
            case "change":
                drawn = data.draw(CHANGES)
                if is_decided(ends.there, drawn):
                    ends.change(drawn)
            case "deliver":
                if (update := ends.outbox.next()) is not None:
                    ends.deliver(update)
            case "again" if ends.sent:
                ends.deliver(data.draw(st.sampled_from(ends.sent)))
            case "restart":
                ends.restart()
            case "take over":
                epoch += 1
                ends.take_over(epoch)
    ends.settle()
    assert ends.inbox.is_complete
    assert ends.agree()
