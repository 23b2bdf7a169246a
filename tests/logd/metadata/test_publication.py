"""What a broker makes of what controllers publish: in turn, fenced by epochs, and again after a gap."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logd.metadata.controller.core import Controller
from logd.metadata.controller.placement import Start
from logd.metadata.controller.topics import NewTopic
from logd.metadata.differences import differences
from logd.metadata.image import BrokerImage, Change, ClusterImage
from logd.metadata.publication import Publication, PublishedImage, Taking
from logd.topic_partition import TopicPartition


def topic(number: int) -> Change:
    return {"type": "topic", "name": "t", "id": f"{number:032x}", "partitions": number, "configs": {}}


def test_changes_follow_a_snapshot_in_turn() -> None:
    published = PublishedImage()
    image = published.image
    assert published.take(Publication(3, 1, [topic(1)])).taking is Taking.MISSED
    assert published.take(Publication(3, 0, [topic(1)], is_snapshot=True)).taking is Taking.APPLIED
    assert published.take(Publication(3, 1, [topic(2)])).taking is Taking.APPLIED
    assert published.take(Publication(3, 1, [topic(9)])).taking is Taking.STALE
    assert published.take(Publication(3, 3, [topic(9)])).taking is Taking.MISSED
    assert published.take(Publication(3, 0, [topic(9)], is_snapshot=True)).taking is Taking.STALE
    assert image.topics["t"].partitions == 2
    assert published.take(Publication(3, 3, [topic(4)], is_snapshot=True)).taking is Taking.APPLIED
    assert published.take(Publication(3, 4, [topic(5)])).changes == [topic(5)]
    assert published.image is image
    assert image.topics["t"].partitions == 5


def test_a_former_controller_is_not_believed() -> None:
    published = PublishedImage()
    published.take(Publication(3, 7, [topic(1)], is_snapshot=True))
    assert published.take(Publication(4, 0, [topic(9)])).taking is Taking.MISSED
    assert published.take(Publication(4, 0, [topic(2)], is_snapshot=True)).taking is Taking.APPLIED
    for is_snapshot in (False, True):
        late = Publication(3, 8, [topic(9)], is_snapshot=is_snapshot)
        assert published.take(late).taking is Taking.STALE
    assert published.image.topics["t"].partitions == 2


@pytest.mark.parametrize("seen", [0, 1])
def test_a_snapshot_says_what_has_changed(seen: int) -> None:
    """To somebody who knows all of it already, nothing."""
    snapshot = Publication(1, seen, [topic(1), {"type": "producer-ids", "next": 5}], is_snapshot=True)
    published = PublishedImage()
    for number in range(seen):
        published.take(snapshot._replace(number=number))
    assert published.take(snapshot).changes == ([] if seen else snapshot.changes)


TOPICS, BROKERS = st.sampled_from("ab"), st.integers(1, 3)
EVENTS = st.lists(
    st.tuples(st.just("create"), TOPICS, st.integers(1, 3))
    | st.tuples(st.just("delete"), TOPICS, st.just(0))
    | st.tuples(st.just("configure"), TOPICS, st.just(0))
    | st.tuples(st.just("came"), st.just(""), BROKERS)
    | st.tuples(st.just("gone"), st.just(""), BROKERS)
    | st.tuples(st.just("shutdown"), st.just(""), BROKERS)
    | st.tuples(st.just("fail"), TOPICS, BROKERS)
    | st.tuples(st.just("mended"), TOPICS, BROKERS)
    | st.tuples(st.just("ids"), st.just(""), BROKERS),
    max_size=20,
)


def play(controller: Controller, events: list[tuple[str, str, int]], epoch: int) -> None:
    """What cannot be just now is left out."""
    image = controller.image
    for step, (event, name, number) in enumerate(events, epoch):
        known = image.brokers.get(number)
        new = NewTopic(
            name=name, topic_id=step.to_bytes(16, "big"), start=Start(step, 0), replication_factor=number
        )
        if event == "create" and name not in image.topics and number <= len(image.brokers):
            controller.apply(controller.create_topic(new))
        elif event == "delete" and name in image.topics:
            controller.apply(controller.delete_topic(name, image.topics[name].topic_id))
        elif event == "configure":
            controller.apply(controller.alter_broker(name, lambda _: {"a": str(step)}, dict))  # noqa: B023
        elif event == "came":
            controller.apply(controller.change_brokers(came=[BrokerImage(id=number, epoch=step)]))
        elif event == "gone":
            controller.apply(controller.change_brokers(gone=[number]))
        elif known and event == "shutdown":
            controller.apply(controller.shut_down(number, known.epoch))
        elif known and event == "ids":
            controller.apply(controller.allocate_producer_ids(number, known.epoch))
        elif known and event == "fail":
            failed = [TopicPartition(name, 0)]
            controller.apply(
                controller.fail_log_dirs(number, known.epoch, log_dirs=[name], partitions=failed)
            )
        elif event == "mended":
            image.offline.pop(number, None)  # as a new controller has it, which was not told


@given(before=EVENTS, after=EVENTS)
def test_differences_lead_from_one_image_to_the_other(
    before: list[tuple[str, str, int]], after: list[tuple[str, str, int]]
) -> None:
    controller = Controller(ClusterImage(), epoch=1)
    controller.apply(controller.change_brokers(came=[BrokerImage(id=n, epoch=0) for n in (1, 2, 3)]))
    play(controller, before, 1)
    early = ClusterImage.of(controller.image.as_changes())
    play(controller, after, 1000)
    late = controller.image
    for change in json.loads(json.dumps(differences(early, late))):
        early.apply(change)
    for name in ("topics", "partitions", "brokers", "offline", "broker_configs", "next_producer_id"):
        assert getattr(early, name) == getattr(late, name), name
    assert not differences(early, late)
