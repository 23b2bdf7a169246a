"""The image of a cluster: snapshots and changes lead to the same, and indexes are what partitions say."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from zlib import crc32

from hypothesis import given
from hypothesis import strategies as st

from kafka_client.topic_partition import TopicPartition
from logd.metadata.broker_index import BrokerIndex
from logd.metadata.image import (
    BrokerImage,
    Change,
    ClusterImage,
    Endpoint,
    PartitionImage,
    TopicImage,
    broker_gone,
    replicas_offline,
    user_configs,
)
from logd.metadata.journal_store import FILE_NAME, JournalStore
from logd.storage.disk import PosixDisk

BROKERS = range(1, 5)
IDS = st.sampled_from(BROKERS)
NAMES = st.sampled_from(("a", "b"))
PARTITIONS = st.builds(TopicPartition, NAMES, st.integers(0, 2))


@st.composite
def topics(draw: st.DrawFn) -> Change:
    number = draw(st.integers(0, 1))
    image = TopicImage(name=draw(NAMES), topic_id=bytes([number]) * 16, partitions=3, configs={"a": "b"})
    return image.as_change()


@st.composite
def partitions(draw: st.DrawFn) -> Change:
    replicas = tuple(draw(st.lists(IDS, min_size=1, unique=True)))
    state = PartitionImage(
        replicas=replicas,
        isr=replicas[draw(st.integers(0, len(replicas) - 1)) :],
        leader=draw(st.sampled_from((-1, *replicas))),
        leader_epoch=draw(st.integers(0, 9)),
        partition_epoch=draw(st.integers(0, 9)),
        adding=replicas[:1] if draw(st.booleans()) else (),
        removing=replicas[1:] if draw(st.booleans()) else (),
    )
    return state.as_change(draw(PARTITIONS))


@st.composite
def brokers(draw: st.DrawFn) -> Change:
    return BrokerImage(
        id=draw(IDS),
        epoch=draw(st.integers(0, 3)),
        rack=draw(st.sampled_from((None, "a"))),
        endpoints=(Endpoint("INTERNAL", "::1", 9092, "SSL"),) if draw(st.booleans()) else (),
        is_shutting_down=draw(st.booleans()),
        offline_log_dirs=tuple(draw(st.lists(st.sampled_from(("/a", "/b"))))),
    ).as_change()


CHANGES: st.SearchStrategy[list[Change]] = st.lists(
    topics()
    | partitions()
    | partitions()
    | brokers()
    | st.builds(broker_gone, IDS)
    | st.builds(replicas_offline, IDS, st.sets(PARTITIONS, min_size=1))
    | NAMES.map(lambda name: {"type": "topic-deleted", "name": name})
    | st.integers(0, 9).map(lambda number: {"type": "producer-ids", "next": number})
    | NAMES.map(lambda name: {"type": "broker-configs", "broker": name, "configs": {"a": name}})
    | st.builds(user_configs, NAMES, st.sampled_from(({}, {"a": "b"})))
    | st.just({"type": "decoy-key", "key": "00ff"}),
    max_size=30,
)


def facts(image: ClusterImage) -> dict[str, Any]:
    """Return all facts of an image, except files of deleted topics, which no snapshot has."""
    index = image.broker_index
    by_broker = {
        broker: (
            set(index.held_by(broker)),
            set(index.led_by(broker)),
            index.preferred_count(broker),
            set(index.not_led_as_preferred(broker)),
        )
        for broker in BROKERS
    }
    plain = {
        name: getattr(image, name)
        for name in ClusterImage.__slots__
        if name not in ("deleted", "broker_index")
    }
    return {
        **plain,
        "by broker": by_broker,
        "brokers that hold": index.brokers,
        "brokers preferred": index.preferred_brokers,
        "leaderless": index.leaderless,
        "reassigning": index.reassigning,
    }


def recomputed(image: ClusterImage) -> ClusterImage:
    again = ClusterImage()
    for name in ClusterImage.__slots__:
        setattr(again, name, getattr(image, name))
    again.broker_index = BrokerIndex()
    for tp, state in image.partitions.items():
        again.broker_index.add(tp, state)
    return again


@given(before=CHANGES, after=CHANGES)
def test_a_snapshot_and_what_follows_is_all_that_happened(before: list[Change], after: list[Change]) -> None:
    whole = ClusterImage.of([*before, *after])
    snapshot = through_json(ClusterImage.of(before).as_changes())
    late = ClusterImage.of([*snapshot, *through_json(after)])
    assert facts(late) == facts(whole) == facts(recomputed(whole))
    assert facts(ClusterImage.of(through_json(whole.as_changes()))) == facts(whole)


def through_json(changes: Iterable[Change]) -> list[Change]:
    again: list[Change] = json.loads(json.dumps(list(changes)))
    return again


def test_a_topic_takes_its_partitions_with_it_and_so_does_one_of_another_id() -> None:
    state = PartitionImage(replicas=(1, 2), isr=(1,), leader=1)
    tp = TopicPartition("t", 0)
    first, second = (TopicImage(name="t", topic_id=bytes([n]) * 16, partitions=1) for n in (1, 2))
    offline = replicas_offline(2, [tp])
    for end in ({"type": "topic-deleted", "name": "t"}, second.as_change()):
        image = ClusterImage.of([first.as_change(), state.as_change(tp), offline])
        assert image.holds(2) == {tp} == image.offline_of(2) == image.leads(1)
        image.apply(end)
        assert not image.partitions
        assert not image.offline
        assert not image.holds(1) | image.holds(2) | image.leads(1)


def test_a_replica_that_is_taken_away_is_not_offline_any_more() -> None:
    tp = TopicPartition("t", 0)
    image = ClusterImage.of(
        [PartitionImage(replicas=(1, 2), isr=(1,), leader=1).as_change(tp), replicas_offline(2, [tp])]
    )
    image.apply(PartitionImage(replicas=(1,), isr=(1,), leader=1).as_change(tp))
    assert not image.offline_of(2)


def test_a_standalone_brokers_journal_has_nothing_of_this(tmp_path: Path) -> None:
    """Images loaded from a journal without partitions have none. The journal is rewritten as it was."""
    encoded = b'[{"type":"topic","name":"t","id":"%b","partitions":3,"configs":{}}]' % (b"01" * 16)
    (tmp_path / FILE_NAME).write_bytes(b"%08x %b\n" % (crc32(encoded), encoded))
    store = JournalStore(tmp_path, PosixDisk())
    image = store.load()
    store.close()
    assert image.topics == {"t": TopicImage(name="t", topic_id=b"\1" * 16, partitions=3)}
    assert (image.partitions, image.brokers, image.offline) == ({}, {}, {})
    assert [change["type"] for change in image.as_changes()] == ["topic", "producer-ids"]
