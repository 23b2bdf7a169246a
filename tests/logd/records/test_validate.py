"""What a broker refuses of a client's batch, and with which code."""

from __future__ import annotations

from typing import Any

import cramjam
import pytest

from logd.errors import ErrorCode, KafkaError
from logd.records import (
    Codec,
    NewRecord,
    build_batch,
    build_end_marker,
    check_produced,
    check_produced_records,
    read_header,
    rebuild_batch,
)
from logd.records.build import seal

RECORDS: list[NewRecord] = [(1, b"a", b"b", ()), (2, b"c", None, ())]
GOOD = build_batch(RECORDS, producer_id=1, producer_epoch=0, base_sequence=0)


def altered(**changes: Any) -> bytes:
    """A batch with other header fields, its CRC right."""
    return seal(read_header(GOOD)._replace(**changes), GOOD[61:])


def with_body(body: bytes, **fields: int) -> bytes:
    """Sound as a batch, its CRC right."""
    return seal(read_header(GOOD)._replace(batch_length=49 + len(body), **fields), body)


def linked_lz4() -> bytes:
    """What `cramjam.lz4.compress`, and most libraries, make if not told otherwise."""
    return with_body(bytes(cramjam.lz4.compress(GOOD[61:])), attributes=Codec.LZ4)


def test_good_batches_pass() -> None:
    compressed = [build_batch(RECORDS, codec=codec) for codec in Codec]
    for batch in (GOOD, *compressed, altered(attributes=0x10)):
        assert check_produced(memoryview(batch)).count == 2
    assert len(check_produced_records(GOOD)) == 2
    # A client may say whatever it likes where the broker writes anyway.
    assert check_produced(altered(base_offset=99, partition_leader_epoch=77)).base_offset == 99


@pytest.mark.parametrize(
    ("batch", "complaint"),
    [
        (b"", "0 bytes"),
        (GOOD[:60], "60 bytes"),
        (GOOD[:-1], "cut off"),
        (GOOD[:-1] + b"\xff", "CRC"),
        (altered(attributes=6), "codec 6"),
        (altered(batch_length=10), "less than a header"),
    ],
)
def test_corrupt_batches(batch: bytes, complaint: str) -> None:
    with pytest.raises(KafkaError, match=complaint) as caught:
        check_produced(batch)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize(
    ("batch", "complaint"),
    [
        (GOOD + GOOD, "more than one batch"),
        (GOOD + b"x", "more than one batch"),
        (linked_lz4(), "lz4 frame with linked blocks"),
        (with_body(b"no records at all" * 2), "record 1 of 2 is cut off"),
        (with_body(b"\xff" * 40), "record 1 of 2 has a length no record can have"),
        (with_body(GOOD[61:-6]), "record 2 of 2 is cut off"),
        (
            with_body(GOOD[61:64] + b"\2" + GOOD[65:]),
            "record 1 of 2 does not have the offset after the one before",
        ),
        (
            with_body(b"no record", count=1, last_offset_delta=0),
            "record 1 of 1 is cut off",
        ),
        (
            with_body(b"\x10" + b"\0" * 9, count=1, last_offset_delta=0),
            "record 1 of 1 does not end where its length says",
        ),
        (with_body(GOOD[61:], attributes=Codec.GZIP), "0x[0-9a-f]{10} are not gzip's"),
        (with_body(GOOD[61:], attributes=Codec.LZ4), "are not lz4's"),
        (with_body(b""), "record 1 of 2 is cut off"),
        (with_body(b"", attributes=Codec.ZSTD), "are not zstd's"),
        (altered(magic=1), "format 1"),
        (altered(magic=0), "format 0"),
        (altered(attributes=0x30), "control"),
        (altered(last_offset_delta=5), "2 records over 6 offsets"),
        (altered(count=1), "1 records over 2 offsets"),
        (rebuild_batch(read_header(GOOD), []), "0 records over 2 offsets"),
        (altered(base_sequence=-1), "sequence -1"),
        (altered(producer_epoch=-1), "epoch -1"),
        (altered(producer_id=-1, attributes=0x10), "without a producer id"),
        (
            build_end_marker(1, timestamp_ms=0, producer_id=1, producer_epoch=0, coordinator_epoch=0),
            "control",
        ),
    ],
)
def test_batches_a_client_may_not_produce(batch: bytes, complaint: str) -> None:
    with pytest.raises(KafkaError, match=complaint) as caught:
        check_produced(batch)
    assert caught.value.code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize(
    ("batch", "complaint"),
    [
        (
            rebuild_batch(read_header(GOOD), [(1, 1, b"k", None, ()), (0, 1, b"k", None, ())]),
            "offset delta 1",
        ),
        (GOOD[:-3] + b"\xff\xff\xff", "record"),
    ],
)
def test_records_a_client_may_not_produce(batch: bytes, complaint: str) -> None:
    with pytest.raises(KafkaError, match=complaint) as caught:
        check_produced_records(batch)
    assert caught.value.code is ErrorCode.INVALID_RECORD
