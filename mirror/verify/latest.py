"""Compares the latest value of each key of a compacted topic.

Each cluster compacts in its own time, so the records of two equal topics differ, and the latest value of each
key does not. A tombstone counts as no value: it may be compacted away on one side already. Records without a
key, which compaction deletes, do not count.

Only digests of keys and records are stored, of `KEYS_MAX` keys at a time. If a partition has more, keys whose
digest does not fit a bit pattern are dropped, and compared in further readings of the partition.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple, TypeAlias

from kafka_client import TopicPartition
from kafka_client.records import Record
from mirror.verify.comparison import ComparedBy, Difference, PartitionComparison, Side
from mirror.verify.digest import SIZE, canonical
from mirror.verify.reading import SideReader

KEYS_MAX = 2_000_000
"""Keys that are stored at a time, of both sides together, at some 350 bytes each."""


class Latest(NamedTuple):
    """A key's latest record on one side. `digest` is empty for a tombstone."""

    offset: int
    digest: bytes


Pair: TypeAlias = tuple[Latest | None, Latest | None]
"""A key's latest record on the source's side and on the target's."""


class KeyTable:
    """The latest records of the keys whose digest is `residue` modulo `modulus`, a power of 2.

    With more than `keys_max` keys the modulus is doubled. `left` has the classes of keys that this drops, as
    (modulus, residue).
    """

    def __init__(self, modulus: int = 1, residue: int = 0, keys_max: int = KEYS_MAX) -> None:
        self.left: list[tuple[int, int]] = []
        self._modulus, self._residue = modulus, residue
        self._keys_max = keys_max
        self._pairs: dict[int, Pair] = {}

    def add(self, side: Side, records: Iterable[Record]) -> None:
        """Add the side's next records, in offset order."""
        for record in records:
            offset, _, key, value, _ = record
            if key is None:
                continue
            number = int.from_bytes(blake2b(key, digest_size=SIZE).digest())
            if number % self._modulus != self._residue:
                continue
            digest = b"" if value is None else blake2b(canonical([record]), digest_size=SIZE).digest()
            latest, (ours, theirs) = Latest(offset, digest), self._pairs.get(number, (None, None))
            self._pairs[number] = (latest, theirs) if side is Side.SOURCE else (ours, latest)
            while len(self._pairs) > self._keys_max:
                self._split()

    def pairs(self) -> Iterable[Pair]:
        """Return the keys' latest records, without tombstones; a side without a value has None."""
        return ((_with_value(ours), _with_value(theirs)) for ours, theirs in self._pairs.values())

    def _split(self) -> None:
        self.left.append((2 * self._modulus, self._residue + self._modulus))
        self._modulus *= 2
        self._pairs = {
            number: pair for number, pair in self._pairs.items() if number % self._modulus == self._residue
        }


@dataclass(slots=True)
class _Totals:
    """Counts, digests and the first differing key of all keys compared so far.

    A digest is the sum of its values' digests modulo 2^128, so their order does not count.
    """

    source_keys: int = 0
    target_keys: int = 0
    source_digest: int = 0
    target_digest: int = 0
    first: Pair | None = None
    """The differing key with the lowest offset."""

    def add(self, table: KeyTable) -> None:
        """Add the keys of a table that both sides were added to."""
        for ours, theirs in table.pairs():
            if ours is not None:
                self.source_keys += 1
                self.source_digest = _plus(self.source_digest, ours.digest)
            if theirs is not None:
                self.target_keys += 1
                self.target_digest = _plus(self.target_digest, theirs.digest)
            if (ours and ours.digest) != (theirs and theirs.digest):
                pair = (ours, theirs)
                self.first = pair if self.first is None else min(self.first, pair, key=_offset)


async def compare_latest(
    source: SideReader,
    target: SideReader,
    tps: tuple[TopicPartition, TopicPartition],
    bounds: tuple[tuple[int, int], tuple[int, int]],
    *,
    keys_max: int = KEYS_MAX,
) -> PartitionComparison:
    """Compare a partition of the source with one of the target, each within its bounds."""
    totals, classes = _Totals(), [(1, 0)]
    while classes:
        table = KeyTable(*classes.pop(), keys_max)
        await asyncio.gather(
            _add(table, source, tps[0], bounds[0]),
            _add(table, target, tps[1], bounds[1]),
        )
        totals.add(table)
        classes += table.left
    partition = tps[0].partition
    unreadable = source.unreadable.get(partition, []) + target.unreadable.get(partition, [])
    difference = None if totals.first is None else await _difference(source, target, tps, totals.first)
    # The unreadable records may be the latest of the keys that differ.
    equal = None if unreadable and difference else difference is None
    return PartitionComparison(
        partition=partition,
        compared_by=ComparedBy.LATEST,
        equal=equal,
        source_digest=f"{totals.source_digest:032x}",
        target_digest=f"{totals.target_digest:032x}",
        source_records=totals.source_keys,
        target_records=totals.target_keys,
        difference=difference if equal is False else None,
        unreadable=unreadable,
    )


async def _add(table: KeyTable, reader: SideReader, tp: TopicPartition, bounds: tuple[int, int]) -> None:
    async for _, records, _ in reader.read({tp: bounds}):
        table.add(reader.side, records)


async def _difference(
    source: SideReader, target: SideReader, tps: Sequence[TopicPartition], pair: Pair
) -> Difference:
    """Read a differing key's records again. A record that was compacted away meanwhile has no fields."""
    ours, theirs = [
        None if latest is None else await reader.first(tp, latest.offset) or _deleted_record(latest.offset)
        for reader, tp, latest in zip((source, target), tps, pair, strict=True)
    ]
    return Difference(None, ours, theirs)


def _deleted_record(offset: int) -> Record:
    return offset, -1, None, None, ()


def _with_value(latest: Latest | None) -> Latest | None:
    return latest if latest is not None and latest.digest else None


def _plus(total: int, digest: bytes) -> int:
    return (total + int.from_bytes(digest)) % (1 << 8 * SIZE)


def _offset(pair: Pair) -> int:
    return min(latest.offset for latest in pair if latest is not None)
