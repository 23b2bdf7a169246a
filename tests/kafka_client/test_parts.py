"""Fetched batches are read a bounded number of records at a time, and errors name unreadable batches."""

from __future__ import annotations

import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_client import Fetched
from kafka_client.errors import UnreadableBatch
from kafka_client.fetcher.parts import Part
from kafka_client.records import ABORT, HEADER_SIZE, Codec, build_batch, read_header
from kafka_client.records.build import seal
from kafka_client.records.header import CRC_POSITION
from tests.kafka_client.test_fetched import TP, data, fetched, marker

TINY = b"\x0c\0\0\0\1\1\0"
"""A record of 7 bytes, without key and value."""


def bomb(offset: int, count: int) -> bytes:
    """Return a batch of a few KB with `count` tiny records, all with the first one's offset."""
    packer = zlib.compressobj(9, wbits=31)
    body = packer.compress(TINY * count) + packer.flush()
    header = read_header(build_batch([(0, None, None, ())], base_offset=offset, codec=Codec.GZIP))
    return seal(
        header._replace(batch_length=HEADER_SIZE - 12 + len(body), count=count, last_offset_delta=count - 1),
        body,
    )


def broken(batch: bytes, at: int = -3) -> bytes:
    """Return the batch with a flipped byte, and its CRC unchanged."""
    damaged = bytearray(batch)
    damaged[at] ^= 0x55
    return bytes(damaged)


def unreadable(batch: bytes) -> bytes:
    """Return the batch with a body that cannot be decoded, and a right CRC."""
    header = read_header(batch)
    return seal(header._replace(attributes=0), b"\xff" * (len(batch) - HEADER_SIZE))


@given(
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=5),
    position=st.integers(0, 8),
    max_records=st.integers(1, 9),
)
def test_parts_are_the_records_in_order(sizes: list[int], position: int, max_records: int) -> None:
    batches, offset = [], 0
    for size in sizes:
        batches.append(data(offset, *(b"%d" % n for n in range(offset, offset + size))))
        offset += size
    position = min(position, offset - 1)
    of = fetched(*batches, position=position)
    parts = list(of.parts(max_records))
    assert [record[0] for part in parts for record in part.records] == list(range(position, offset))
    assert of.records() == [record for part in parts for record in part.records]
    due = position
    for part in parts[:-1]:
        assert len(part.records) == max_records
        due += max_records
        assert part.next_offset == due, "where reading goes on after the part"
    assert parts[-1].next_offset == offset and len(parts[-1].records) < max_records


def test_millions_of_records_in_a_few_kilobytes_take_little_memory() -> None:
    of = fetched(bomb(5, 1_000_000))
    read = 0
    tracemalloc.start()
    try:
        for part in of.parts(1000):
            read += len(part.records)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert read == 1_000_000 and len(of.buffer) < 20_000
    assert peak < 20_000_000


def read_all(of: Fetched) -> tuple[list[Part], UnreadableBatch | None]:
    parts: list[Part] = []
    try:
        for part in of.parts(2):
            parts.append(part)
    except UnreadableBatch as error:
        return parts, error
    return parts, None


@pytest.mark.parametrize("damage", [broken, unreadable])
def test_a_batch_that_cannot_be_read_is_named_once_what_is_before_it_was_read(damage: object) -> None:
    assert callable(damage)
    of = fetched(data(3, b"a", b"b", b"c"), damage(data(6, b"d" * 30, b"e")), data(8, b"f"), position=3)
    parts, error = read_all(of)
    assert error is not None
    assert [record[0] for part in parts for record in part.records] == [3, 4, 5]
    assert parts[-1].next_offset == 6
    assert (error.topic, error.partition) == TP
    assert (error.first_offset, error.last_offset, error.record_count) == (6, 7, 2)
    assert str(error).startswith("t-0: the batch of offsets 6 to 7 cannot be read: ")
    assert error.reason in str(error) and "seek to offset 8" in str(error)


@pytest.mark.parametrize("damage", [broken, unreadable])
def test_a_batch_that_cannot_be_read_is_passed_over_where_that_is_asked_for(damage: object) -> None:
    assert callable(damage)
    of = fetched(data(3, b"a"), damage(data(4, b"d" * 30, b"e")), data(6, b"f"), position=3)
    skipped: list[UnreadableBatch] = []
    (part,) = of.parts(10, on_unreadable=skipped.append)
    assert [record[3] for record in part.records] == [b"a", b"f"]
    assert [(each.first_offset, each.last_offset) for each in skipped] == [(4, 5)]
    assert part.next_offset == 7


def test_a_header_that_makes_no_sense_is_named_by_the_offsets_around_it() -> None:
    wrong = bytearray(data(4, b"d", b"e"))
    wrong[CRC_POSITION - 1] = 9  # the magic number
    of = fetched(data(3, b"a"), bytes(wrong), data(6, b"f"), position=3)
    skipped: list[UnreadableBatch] = []
    (part,) = of.parts(10, on_unreadable=skipped.append)
    assert [record[3] for record in part.records] == [b"a", b"f"]
    assert [(each.first_offset, each.last_offset) for each in skipped] == [(4, 5)]
    with pytest.raises(UnreadableBatch, match=r"offsets 4 to 5 cannot be read: batch magic 9"):
        of.records()


def test_an_abort_marker_that_cannot_be_read_still_ends_its_transaction() -> None:
    of = fetched(
        data(0, b"aborted", producer_id=7),
        unreadable_marker(1, 7),
        data(2, b"later", producer_id=7),
        aborted=((7, 0),),
    )
    assert [record[3] for record in of.records()] == [b"later"]


def unreadable_marker(offset: int, producer_id: int) -> bytes:
    header = read_header(marker(ABORT, offset, producer_id))
    return seal(header, b"\xff" * (header.size - HEADER_SIZE))
