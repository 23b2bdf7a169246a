"""Topics that are deleted, created again or purged stop their copies until an operator accepts the break."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

import pytest

from kafka_client import Admin, Client, TopicPartition
from kafka_client.errors import ConfigError
from mirror.discontinuities import ACCEPT_KEY, Discontinuities
from mirror.errors import (
    ForeignWrite,
    MirrorError,
    RecordsLost,
    SourcePurged,
    SourceRecreated,
    TargetRecreated,
)
from mirror.link import Link
from mirror.offsets import OffsetSync
from mirror.places import parse_places
from mirror.position import LogEnds
from tests.mirror.pair import Pair, numbered, produce, target_ends
from tests.support.waiting import until

NewName = Callable[[], str]
TP = TopicPartition("flights", 0)
SYNC = OffsetSync(TP, 9, 9, 10, 10)


@pytest.mark.parametrize(
    ("kind", "source", "target", "upstream"),
    [
        (RecordsLost, (20, 30), (0, 10), 20),
        (SourcePurged, (20, 30), (0, 12), 20),
        (SourcePurged, (11, 30), (0, 15), 15),
        (SourceRecreated, (0, 5), (0, 10), 0),
        (TargetRecreated, (3, 30), (0, 0), 3),
    ],
)
def test_an_accepted_break_is_resumed_without_doubling_what_is_known_to_be_copied(
    kind: type[MirrorError], source: tuple[int, int], target: tuple[int, int], upstream: int
) -> None:
    error, ends = kind(TP, "why"), (LogEnds(*source), LogEnds(*target))
    position = Discontinuities(((TP, 10),)).resume(error, SYNC, *ends)
    assert (position.upstream, position.downstream, position.producer) == (upstream, target[1], None)
    with pytest.raises(kind, match=f"why. .* source offset {upstream}, set {ACCEPT_KEY}=flights-0@10"):
        Discontinuities(((TP, 9), (TopicPartition("flights", 1), 10))).resume(error, SYNC, *ends)


def test_another_writer_in_the_target_cannot_be_accepted() -> None:
    error = ForeignWrite(TP, "somebody else")
    with pytest.raises(ForeignWrite, match=r"somebody else$"):
        Discontinuities(((TP, 10),)).resume(error, SYNC, LogEnds(0, 30), LogEnds(0, 10))


def test_a_place_is_a_partition_and_an_offset() -> None:
    assert parse_places(ACCEPT_KEY, "a-b-0@12") == ((TopicPartition("a-b", 0), 12),)
    with pytest.raises(ConfigError, match=f"{ACCEPT_KEY}=flights-0"):
        parse_places(ACCEPT_KEY, "flights-0")


async def test_a_remote_topic_that_was_deleted_is_not_created_again_unless_accepted(
    pair: Pair, new_name: NewName
) -> None:
    """The next refresh created it again, empty, and the copy went on with lag 0."""
    topic = new_name()
    tp, remote = TopicPartition(topic, 0), f"dc1.{topic}"
    await pair.create(topic)
    await produce(pair.dc1, topic, {0: [numbered(10)]})
    async with Link(pair.link(topic, refresh_topics_interval_seconds="0")) as link:
        running = asyncio.create_task(link.run())
        await until(lambda: link.status()[tp].records == 10)
        async with Client(pair.dc2) as client:
            await Admin(client).delete_topics([remote])
        await until(lambda: tp in link.quarantined and link.quarantined[tp].failures > 1)
        error = link.quarantined[tp].error
        assert isinstance(error, TargetRecreated)
        named = re.search(f"set {ACCEPT_KEY}=({topic}-0@[0-9]+)$", error.what)
        assert named is not None, error
        assert not link.status()
        assert await target_ends(pair, topic) == {}
        link.stop()
        await running
    with pytest.raises(TargetRecreated, match="the remote topic was deleted"):
        await pair.copy(topic)
    assert await target_ends(pair, topic) == {}
    accepted = {ACCEPT_KEY: named[1]}
    assert await pair.copy(topic, **accepted) == 10
    assert (await pair.verify(topic)).equal
    await produce(pair.dc1, topic, {0: [numbered(5, 10)]})
    assert await pair.copy(topic, **accepted) == 5, "the setting has no effect later"


async def test_a_topic_that_was_created_again_is_copied_after_the_old_one_if_accepted(
    pair: Pair, new_name: NewName
) -> None:
    topic = new_name()
    await pair.create(topic)
    await produce(pair.dc1, topic, {0: [numbered(10)]})
    assert await pair.copy(topic) == 10
    async with Client(pair.dc1) as client:
        await Admin(client).delete_topics([topic])
    await pair.create(topic)
    await produce(pair.dc1, topic, {0: [numbered(4)]})
    with pytest.raises(SourceRecreated, match=f"set {ACCEPT_KEY}={topic}-0@10"):
        await pair.copy(topic)
    accepted = {ACCEPT_KEY: f"{topic}-0@10"}
    assert await pair.copy(topic, **accepted) == 4
    assert await pair.copy(topic, **accepted) == 0
    assert await target_ends(pair, topic) == {0: 14}


async def test_records_that_retention_removed_are_left_out_if_accepted(pair: Pair, new_name: NewName) -> None:
    topic = new_name()
    await pair.create(topic)
    await produce(pair.dc1, topic, {0: [numbered(10)]})
    assert await pair.copy(topic) == 10
    await produce(pair.dc1, topic, {0: [numbered(10, 10), numbered(10, 20)]})
    async with Client(pair.dc1) as client:
        await Admin(client).delete_records({TopicPartition(topic, 0): 20})
    with pytest.raises(RecordsLost, match=f"from source offset 20, set {ACCEPT_KEY}={topic}-0@10"):
        await pair.copy(topic)
    assert await pair.copy(topic, **{ACCEPT_KEY: f"{topic}-0@10"}) == 10
    assert await target_ends(pair, topic) == {0: 20}
