"""Batches of the source that a disk damaged: named, quarantined, and skipped once an operator names them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_client import TopicPartition
from kafka_client.errors import ConfigError, UnreadableBatch
from kafka_client.records import read_header
from mirror.errors import MirrorError, NotFetched
from mirror.link import Link
from mirror.unreadable import UnreadableSkips, parse_skips
from tests.kafka_client.test_fetched import TP, data
from tests.kafka_client.test_parts import broken
from tests.mirror.pair import Pair, numbered, produce, target_ends
from tests.support.damaged_log import damage_batch
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess

NewName = Callable[[], str]


def test_places_are_read() -> None:
    assert parse_skips("") == ()
    assert parse_skips("a-b-0@12, t-3@0") == (
        (TopicPartition("a-b", 0), 12),
        (TopicPartition("t", 3), 0),
    )


@pytest.mark.parametrize("text", ["t-0", "t@5", "-0@5", "t-0@-5", "t-x@5", "t-0@"])
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"skip\.unreadable\.batches"):
        parse_skips(text)


def test_only_a_batch_that_is_named_and_cannot_be_read_is_skipped() -> None:
    skips = UnreadableSkips([(TP, 4)])
    bad, good = memoryview(broken(data(3, b"a", b"b"))), memoryview(data(3, b"a", b"b"))
    elsewhere = memoryview(broken(data(5, b"a")))
    skip = skips.named_and_unreadable(TP, read_header(bad), bad)
    assert skip is not None and (skip.first_offset, skip.last_offset) == (3, 4)
    assert skips.named_and_unreadable(TP, read_header(good), good) is None
    assert skips.named_and_unreadable(TP, read_header(elsewhere), elsewhere) is None
    skips.skip(skip)
    assert (skips.batches, skips.records) == (1, 2)
    other = UnreadableBatch("t", 1, first_offset=3, last_offset=4, record_count=2, reason="x")
    with pytest.raises(UnreadableBatch):
        skips.skip(other)


@deep
@pytest.mark.parametrize("right_crc", [False, True])
def test_a_partition_stops_before_an_unreadable_batch_and_goes_on_once_it_is_named(
    pair: Pair, new_name: NewName, tmp_path: Path, right_crc: bool
) -> None:
    topic = new_name()
    batches = [numbered(5), numbered(5, 5), numbered(5, 10)]

    async def fill(ends: Pair) -> None:
        await ends.create(topic)
        await produce(ends.dc1, topic, {0: batches})

    async def copy(ends: Pair) -> None:
        with pytest.raises(MirrorError) as failed:
            await ends.copy(topic)
        assert type(failed.value) is NotFetched
        text = str(failed.value)
        assert text.startswith(f"{topic}-0: the batch of offsets 5 to 9 cannot be read: ")
        assert text.endswith(f"To go on without it, set skip.unreadable.batches={topic}-0@5")
        place = {"skip_unreadable_batches": f"{topic}-0@7"}
        async with Link(ends.link(topic, **place)) as link:
            await link.run(until_caught_up=True)
            assert (link.skips.batches, link.skips.records) == (1, 5)
            (status,) = link.status().values()
            assert status.lag_records == 0
        assert await target_ends(ends, topic) == {0: 10}
        assert await ends.copy(topic, **place) == 0, "a restart finds its place behind the gap"
        await produce(ends.dc1, topic, {0: [numbered(5, 15)]})
        assert await ends.copy(topic, **place) == 5

    with LogdProcess(tmp_path) as source:
        asyncio.run(fill(Pair(source.bootstrap, pair.dc2)))
        source.stop()
        damage_batch(tmp_path / "data", topic, 5, right_crc=right_crc)
        source.start()
        asyncio.run(copy(Pair(source.bootstrap, pair.dc2)))
