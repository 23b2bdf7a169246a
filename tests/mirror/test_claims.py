"""Two mirrors begin a partition at the same time: the first sync in the topic decides."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kafka_client import Client, Identity, TopicPartition
from mirror import claims
from mirror.claims import Claims
from mirror.link import Link
from mirror.offsets import OffsetSync, OffsetSyncs, ProducerPosition
from tests.mirror.pair import Pair, numbered, produce, target_ends
from tests.support.waiting import until

A, B = TopicPartition("a", 0), TopicPartition("b", 0)
OURS, THEIRS = Identity(1, 0), Identity(2, 0)


def sync(tp: TopicPartition, identity: Identity, at: int = 0) -> OffsetSync:
    return OffsetSync(tp, at, at, at, at, producer=ProducerPosition(identity, at))


async def test_the_first_sync_in_the_topic_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    none: Any = None
    syncs = OffsetSyncs(Client("127.0.0.1:1"), "syncs", 1)
    ours = Claims(none, syncs, OURS)

    async def read(client: Any, topic: str, take: Callable[[int, OffsetSync], None], position: int) -> int:
        log = [sync(A, THEIRS), sync(A, OURS), sync(B, OURS), sync(B, THEIRS), sync(A, THEIRS, 7)]
        for offset, written in enumerate(log[position:], position):
            take(offset, written)
        return len(log)

    monkeypatch.setattr(claims, "read_syncs", read)
    assert await ours.lost({A: 1, B: 2}) == [A]
    assert syncs.latest(A) == sync(A, THEIRS, 7), "what the other has written since"
    assert syncs.latest(B) is None
    assert await ours.lost({A: 5}) == [], "it goes on as the other"


async def test_two_mirrors_of_an_empty_topic_copy_each_record_once(
    pair: Pair, new_name: Callable[[], str]
) -> None:
    """Both began under producer ids of their own, and the target took the records of both."""
    topic = new_name()
    tp = TopicPartition(topic, 0)
    await pair.create(topic)
    async with Link(pair.link(topic)) as first, Link(pair.link(topic)) as second:
        running = [asyncio.create_task(link.run()) for link in (first, second)]
        for part in range(4):
            await produce(pair.dc1, topic, {0: [numbered(10, 10 * part)]})
        for link in (first, second):
            await until(lambda link=link: (s := link.status().get(tp)) and s.position == 40)  # type: ignore[misc]
        assert not first.quarantined
        assert not second.quarantined
        first.stop()
        second.stop()
        await asyncio.gather(*running)
    assert await target_ends(pair, topic) == {0: 40}
    assert (await pair.verify(topic)).equal
