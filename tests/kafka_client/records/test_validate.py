"""A broker refuses a client's malformed batch, with the error code of the fault."""

from __future__ import annotations

from typing import Any

import cramjam
import pytest

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.records import (
    Codec,
    NewRecord,
    build_batch,
    build_end_marker,
    check_produced,
    check_records,
    read_header,
    rebuild_batch,
)
from kafka_client.records.build import seal
from kafka_client.records.compression import DecompressedTooLarge, compress

RECORDS: list[NewRecord] = [(1, b"a", b"b", ()), (2, b"c", None, ())]
GOOD = build_batch(RECORDS, producer_id=1, producer_epoch=0, base_sequence=0)


def altered(**changes: Any) -> bytes:
    """Return the good batch with these header fields changed and its CRC recomputed."""
    return seal(read_header(GOOD)._replace(**changes), GOOD[61:])


def with_body(body: bytes, **fields: int) -> bytes:
    """Return a batch with `body` as its records, a fitting length and a right CRC."""
    return seal(read_header(GOOD)._replace(batch_length=49 + len(body), **fields), body)


def linked_lz4() -> bytes:
    """Return a batch in linked LZ4 blocks, the default of `cramjam.lz4.compress` and most libraries."""
    return with_body(bytes(cramjam.lz4.compress(GOOD[61:])), attributes=Codec.LZ4)


def test_good_batches_pass() -> None:
    compressed = [build_batch(RECORDS, codec=codec) for codec in Codec]
    for batch in (GOOD, *compressed, altered(attributes=0x10)):
        assert check_produced(memoryview(batch)).count == 2
    assert check_records(GOOD, read_header(GOOD)) == (2, 1, 1, 0)
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


BODY = GOOD[61:]


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (b"no records at all" * 2, "record 1 of 2 is cut off"),
        (b"\xff" * 40, "record 1 of 2 has a length no record can have"),
        (BODY[:-6], "record 2 of 2 is cut off"),
        (BODY[:3] + b"\2" + BODY[4:], "record 1 of 2 does not have the offset after the one before"),
        (BODY[:-5] + b"\0" + BODY[-4:], "record 2 of 2 does not have the offset after the one before"),
        (b"\x10" + b"\0" * 9 + BODY, "record 1 of 2 does not end where its length says"),
        (BODY + b"more", "4 bytes or more after the last of 2 records"),
        (BODY[:9], "record 2 of 2 is cut off"),
        (b"", "record 1 of 2 is cut off"),
    ],
)
@pytest.mark.parametrize("codec", Codec)
def test_records_a_client_may_not_produce(body: bytes, complaint: str, codec: Codec) -> None:
    batch = with_body(bytes(compress(codec, body)), attributes=codec)
    check_produced(batch)
    with pytest.raises(KafkaError, match=complaint) as caught:
        check_records(batch, read_header(batch))
    assert caught.value.code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize(
    ("batch", "complaint"),
    [
        (linked_lz4(), "lz4 frame with linked blocks"),
        (with_body(GOOD[61:], attributes=Codec.GZIP), "0x[0-9a-f]{10} are not gzip's"),
        (with_body(GOOD[61:], attributes=Codec.LZ4), "are not lz4's"),
        (with_body(b"", attributes=Codec.ZSTD), "are not zstd's"),
        *(
            (with_body(bytes(compress(codec, GOOD[61:])) + b"rest", attributes=codec), "INVALID_RECORD")
            for codec in list(Codec)[1:]
        ),
    ],
)
def test_what_no_codec_has_written(batch: bytes, complaint: str) -> None:
    with pytest.raises(KafkaError, match=complaint) as caught:
        check_records(batch, read_header(batch))
    assert caught.value.code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", Codec)
def test_the_limits_hold_for_compressed_records(codec: Codec) -> None:
    batch = build_batch([(1, None, b"x" * 1000, ())] * 100, codec=codec)
    header = read_header(batch)
    assert check_records(batch, header, limit=200_000, record_limit=2000).keyless == 100
    if codec is Codec.NONE:
        check_records(batch, header, limit=1000, record_limit=10)
        return
    with pytest.raises(DecompressedTooLarge):
        check_records(batch, header, limit=50_000)
    with pytest.raises(KafkaError, match="longer than a record may be") as caught:
        check_records(batch, header, record_limit=1000)
    assert caught.value.code is ErrorCode.INVALID_RECORD


def test_names_of_headers_need_not_be_utf8() -> None:
    """Kafka does not look at them, and Java's readers replace what is none."""
    record = b"\0\0\0\1\1\2\2\xff\1"
    batch = with_body(bytes([len(record) << 1]) + record, count=1, last_offset_delta=0)
    assert check_records(batch, read_header(batch)).keyless == 1
