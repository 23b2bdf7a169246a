"""The digest sees every part of every record, in order, and nothing else."""

from __future__ import annotations

import random

import pytest

from kafka_client.records import Record
from mirror.verify.digest import RANGE, PartitionDigest, first_different_range


def records(count: int) -> list[Record]:
    return [(i, 1000 + i, b"k%d" % i, b"v%d" % i, ()) for i in range(count)]


def digest_of(what: list[Record], cuts: random.Random | None = None) -> PartitionDigest:
    digest = PartitionDigest()
    at = 0
    while at < len(what):
        size = cuts.randint(1, 3 * RANGE) if cuts else len(what)
        digest.add(what[at : at + size])
        at += size
    digest.finish()
    return digest


def test_it_does_not_depend_on_batches_or_offsets() -> None:
    what = records(5 * RANGE + 17)
    moved = [(offset + 1000, *rest) for offset, *rest in what]
    one, other = digest_of(what, random.Random(1)), digest_of(moved, random.Random(2))  # type: ignore[arg-type]
    assert one.finish() == other.finish()
    assert one.ranges == other.ranges
    assert [at % RANGE for at in one.offsets] == [0] * 6
    assert other.offsets == [at + 1000 for at in one.offsets]


@pytest.mark.parametrize(
    "changed",
    [
        (7, 1008, b"k7", b"v7", ()),
        (7, 1007, None, b"v7", ()),
        (7, 1007, b"", b"k7v7", ()),
        (7, 1007, b"k7v", b"7", ()),
        (7, 1007, b"k7", None, ()),
        (7, 1007, b"k7", b"v7", (("h", None),)),
        (7, 1007, b"k7", b"v7", (("h", b""),)),
    ],
)
def test_every_part_counts(changed: Record) -> None:
    what = records(10)
    other = [*what[:7], changed, *what[8:]]
    assert digest_of(what).finish() != digest_of(other).finish()


def test_headers_that_run_together_differ() -> None:
    one: list[Record] = [(0, 0, None, None, (("ab", b"c"),))]
    other: list[Record] = [(0, 0, None, None, (("a", b"bc"),))]
    assert digest_of(one).finish() != digest_of(other).finish()


@pytest.mark.parametrize("at", [0, 1, RANGE - 1, RANGE, 2 * RANGE + 5, 3 * RANGE + 9])
def test_the_first_different_range_is_found(at: int) -> None:
    what = records(3 * RANGE + 10)
    other = [*what[:at], (at, 0, None, None, ()), *what[at + 1 :]]
    assert first_different_range(digest_of(what), digest_of(other)) == at // RANGE


def test_a_shorter_log_differs_where_it_ends() -> None:
    what = records(2 * RANGE + 10)
    assert first_different_range(digest_of(what), digest_of(what[: RANGE + 1])) == 1
    assert first_different_range(digest_of(what), digest_of(what[: 2 * RANGE])) == 2
    assert first_different_range(digest_of([]), digest_of(what)) == 0
