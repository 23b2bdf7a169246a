"""Tests of the changes that requests to the metadata lead to, and of requests that are refused. Nothing is
written here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from kafka_client.errors import ErrorCode, KafkaError
from logd.config.topic import TopicConfig
from logd.metadata import decisions
from logd.metadata.image import Change, ClusterImage, TopicImage
from logd.metadata.recovered_topics import recovered_changes

ID, OTHER, NEW = (bytes([number]) * 16 for number in (1, 2, 3))
DEFAULTS = TopicConfig()


def image_of(*topics: TopicImage) -> ClusterImage:
    image = ClusterImage()
    for topic in topics:
        image.apply(topic.as_change())
    return image


def topic(name: str = "t", *, topic_id: bytes = ID, partitions: int = 2, **configs: str) -> TopicImage:
    return TopicImage(name=name, topic_id=topic_id, partitions=partitions, configs=configs)


def after(image: ClusterImage, changes: list[Change]) -> dict[str, TopicImage]:
    for change in changes:
        image.apply(change)
    return image.topics


def create(
    image: ClusterImage, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None
) -> list[Change]:
    return decisions.create_topic(image, name, partitions, configs or {}, topic_id=NEW, defaults=DEFAULTS)


def test_what_is_decided_is_what_the_image_becomes() -> None:
    image = image_of(topic())
    assert after(image, create(image, "new", 3, {"retention.ms": "5"}))["new"] == TopicImage(
        name="new", topic_id=NEW, partitions=3, configs={"retention.ms": "5"}
    )
    assert after(image, decisions.grow_topic(image, "t", 5))["t"].partitions == 5
    altered = decisions.alter_topic(
        image, "t", ID, lambda before: {**before, "segment.ms": "7"}, defaults=DEFAULTS
    )
    assert after(image, altered)["t"].configs == {"segment.ms": "7"}
    assert set(after(image, decisions.delete_topic(image, "t", ID))) == {"new"}
    assert image.deleted == {ID}
    image.apply(decisions.alter_broker(image, "1", lambda before: {**before, "a": "b"}, dict)[0])
    image.apply(decisions.alter_broker(image, "1", lambda before: {**before, "c": "d"}, dict)[0])
    assert image.broker_configs == {"1": {"a": "b", "c": "d"}}


@pytest.mark.parametrize(
    ("decide", "code"),
    [
        (lambda image: create(image, "t"), ErrorCode.TOPIC_ALREADY_EXISTS),
        (lambda image: create(image, "a.b"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (lambda image: create(image, "no spaces"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (lambda image: create(image, "new", 0), ErrorCode.INVALID_PARTITIONS),
        (
            lambda image: create(image, "new", decisions.PARTITIONS_MAX + 1),
            ErrorCode.POLICY_VIOLATION,
        ),
        (lambda image: create(image, "new", 1, {"retention.ms": "soon"}), ErrorCode.INVALID_CONFIG),
        (lambda image: decisions.grow_topic(image, "t", 2), ErrorCode.INVALID_PARTITIONS),
        (lambda image: decisions.grow_topic(image, "x", 2), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (lambda image: decisions.delete_topic(image, "t", OTHER), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (
            lambda image: decisions.alter_topic(image, "t", OTHER, dict, defaults=DEFAULTS),
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ),
        (
            lambda image: decisions.alter_topic(
                image, "t", ID, lambda _: {"retention.ms": "soon"}, defaults=DEFAULTS
            ),
            ErrorCode.INVALID_CONFIG,
        ),
    ],
)
def test_what_is_refused_leaves_the_image(
    decide: Callable[[ClusterImage], list[Change]], code: ErrorCode
) -> None:
    image = image_of(topic(), topic("a_b", topic_id=OTHER))
    with pytest.raises(KafkaError) as refused:
        decide(image)
    assert refused.value.code == code
    assert image.topics == {"t": topic(), "a_b": topic("a_b", topic_id=OTHER)}


@pytest.mark.parametrize(
    ("logs", "expected"),
    [
        ({}, {}),
        ({"t": {0: ID, 1: None}}, {}),
        ({"t": {0: ID, 3: ID}}, {"t": topic(partitions=4)}),
        ({"t": {2: None}}, {"t": topic(partitions=3)}),
        ({"t": {5: OTHER}}, {}),
        ({"new": {0: None, 4: OTHER}}, {"new": topic("new", topic_id=OTHER, partitions=5, a="b")}),
        ({"new": {1: None}}, {"new": topic("new", topic_id=NEW, partitions=2, a="b")}),
    ],
)
def test_what_is_found_on_disk_is_taken_in(
    logs: dict[str, dict[int, bytes | None]], expected: dict[str, TopicImage]
) -> None:
    image = image_of(topic())
    changes = recovered_changes(image, logs, new_topic_id=lambda: NEW, configs_for=lambda _: {"a": "b"})
    assert after(image, changes) == {"t": topic(), **expected}


def test_the_next_producer_id_never_goes_back() -> None:
    image = ClusterImage()
    for following in (2000, 1000):
        image.apply({"type": "producer-ids", "next": following})
    assert image.next_producer_id == 2000
