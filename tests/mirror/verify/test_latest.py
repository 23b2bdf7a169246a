"""Topics compared by the latest value of each key."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafka_client import Client, TopicPartition
from kafka_client.records import NewRecord, Record
from mirror.verify import ComparedBy, PartitionComparison, Side, TopicComparison
from mirror.verify.latest import KeyTable, compare_latest
from mirror.verify.pace import Pace
from mirror.verify.reading import SideReader
from tests.mirror.pair import Pair, produce

NewName = Callable[[], str]


def written(*values: tuple[bytes | None, bytes | None]) -> list[NewRecord]:
    """Records of keys and values; the timestamp is the value's length, so that equal values are equal."""
    return [(len(value or b""), key, value, ()) for key, value in values]


async def compared(pair: Pair, topic: str, ours: list[NewRecord], theirs: list[NewRecord]) -> TopicComparison:
    await pair.create(topic, cleanup_policy="compact")
    await Pair(pair.dc2, pair.dc1).create(f"dc1.{topic}")
    # Keyless records, as a topic may have that was made compacted later.
    await produce(pair.dc1, topic, {0: [ours]})
    await produce(pair.dc2, f"dc1.{topic}", {0: [theirs]})
    return await pair.verify(topic)


async def test_what_compaction_may_delete_does_not_count(pair: Pair, new_name: NewName) -> None:
    """The source has every record; in the target old values and a tombstone are compacted away."""
    history = written((b"a", b"1"), (b"b", b"2"), (b"a", b"33"), (b"c", b"4"), (b"c", None))
    comparison = await compared(pair, new_name(), history, written((b"b", b"2"), (b"a", b"33")))
    (partition,) = comparison.partitions
    assert partition.compared_by is ComparedBy.LATEST
    assert (partition.equal, partition.source_records, partition.target_records) == (True, 2, 2)
    assert partition.source_digest == partition.target_digest
    assert int(partition.source_digest, 16)


@pytest.mark.parametrize(
    ("theirs", "difference"),
    [
        (((b"a", b"1"), (b"b", b"2")), "key b'a': timestamp, value differ, source offset 2, target offset 0"),
        (((b"b", b"2"),), "key b'a': only the source has it, at offset 2"),
        (((b"a", b"33"), (b"b", b"2"), (b"d", b"5")), "key b'd': only the target has it, at offset 2"),
    ],
)
async def test_the_first_key_that_differs_is_named(
    pair: Pair, new_name: NewName, theirs: tuple[tuple[bytes, bytes], ...], difference: str
) -> None:
    history = written((b"a", b"1"), (b"b", b"2"), (b"a", b"33"))
    comparison = await compared(pair, new_name(), history, written(*theirs))
    assert comparison.equal is False
    assert str(comparison.partitions[0].difference) == difference


def records(count: int) -> list[Record]:
    return [(i, 0, b"key-%d" % (i % 100), b"%d" % i, ()) for i in range(count)]


def test_keys_that_are_too_many_are_left_for_other_readings() -> None:
    classes, pairs = [(1, 0)], []
    while classes:
        table = KeyTable(*classes.pop(), keys_max=9)
        table.add(Side.SOURCE, records(250))
        table.add(Side.TARGET, records(250)[::-1])
        assert len(list(table.pairs())) <= 9
        pairs += list(table.pairs())
        classes += table.left
    assert sorted(ours.offset for ours, _ in pairs if ours) == list(range(150, 250))
    assert sorted(theirs.offset for _, theirs in pairs if theirs) == list(range(100))


async def test_many_keys_give_the_same_result_in_several_readings(pair: Pair, new_name: NewName) -> None:
    topic = new_name()
    await pair.create(topic)
    await produce(pair.dc1, topic, {0: [[record[1:] for record in records(250)]]})
    tp = TopicPartition(topic, 0)

    async def compare(keys_max: int, target_end: int) -> PartitionComparison:
        async with Client(pair.dc1) as client:
            readers = [SideReader(side, client, Pace()) for side in (Side.SOURCE, Side.TARGET)]
            bounds = (0, 250), (0, target_end)
            return await compare_latest(readers[0], readers[1], (tp, tp), bounds, keys_max=keys_max)

    assert (few := await compare(1000, 250)) == await compare(9, 250)
    assert (few.equal, few.source_records) == (True, 100)
    different = await compare(9, 240)
    assert different.difference is not None
    assert str(different.difference).startswith("key b'key-40': value differ, source offset 240, target")
