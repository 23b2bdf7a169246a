"""Batches that no reader could read, or whose header lies: refused, or corrected, as Apache Kafka does.

The same batches go to both brokers. Where ours is stricter, the table says so.
"""

from __future__ import annotations

import gzip
import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import cramjam
import pytest

from kafka_client.errors import CorruptRecordBatch, ErrorCode
from kafka_client.records import Codec, NewRecord, Record, build_batch, decode_records, read_header
from kafka_client.records.build import seal
from kafka_client.records.compression import compress
from kafka_client.records.header import APPEND_TIME_BIT
from kafka_client.records.varint import varint
from tests.support.apache_kafka import ApacheKafka
from tests.support.java import needs_kafka
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.topics import create_topic

NOT_YET = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER)
NOW = int(time.time() * 1000)
YEAR = 365 * 86_400_000
RECORDS: list[NewRecord] = [(NOW, b"k", b"v1", ()), (NOW + 1, b"k", b"v2", ()), (NOW + 2, b"k", b"v3", ())]
PLAIN = build_batch(RECORDS)
HEADER = read_header(PLAIN)
BODY = PLAIN[61:]


def record(
    delta: int = 0,
    *,
    ahead_ms: int = 0,
    key: bytes = b"\2k",
    value: bytes = b"\2v",
    headers: bytes = b"\0",
    size: int = 0,
) -> bytes:
    """Encode a record whose length field is wrong by `size` bytes."""
    body = b"\0" + varint(ahead_ms) + varint(delta) + key + value + headers
    return varint(len(body) + size) + body


def batch(body: bytes, codec: Codec = Codec.NONE, **fields: Any) -> bytes:
    """Build a batch of three records with `body` as it is and a right CRC."""
    fields = {"attributes": codec, **fields}
    return seal(HEADER._replace(batch_length=49 + len(body), **fields), body)


def packed(body: bytes, codec: Codec, **fields: Any) -> bytes:
    return batch(bytes(compress(codec, body)), codec, **fields)


def of_count(count: int) -> dict[str, int]:
    return {"count": count, "last_offset_delta": count - 1}


NUMBERS = itertools.count()
"""The configs of a topic that refuses records without a key."""


class Case(NamedTuple):
    """A batch to send to both brokers, and our error code; `kafkas` is Kafka's where it differs from ours."""

    name: str
    batch: bytes
    code: ErrorCode
    kafkas: ErrorCode | None = None
    configs: Mapping[str, str] = {}


INVALID, CORRUPT = ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE
NONE, TIMESTAMP = ErrorCode.NONE, ErrorCode.INVALID_TIMESTAMP
UNKNOWN = ErrorCode.UNKNOWN_SERVER_ERROR
THREE = record(0) + record(1) + record(2)

BODIES: tuple[tuple[str, bytes, ErrorCode, ErrorCode | None, ErrorCode | None], ...] = (
    # Our answer, and Kafka's to the plain and to the compressed body, where that is another one.
    ("text", b"this is no record at all, nothing to see here, go on please....", INVALID, None, None),
    ("nothing", b"", INVALID, None, None),
    ("fewer", record(0) + record(1), INVALID, None, None),
    ("more", THREE + record(3), INVALID, None, None),
    ("rest", THREE + b"rest", INVALID, None, None),
    ("equal offsets", record(0) + record(0) + record(0), INVALID, NONE, UNKNOWN),
    ("gap", record(0) + record(2) + record(3), INVALID, NONE, UNKNOWN),
    ("long record", record(0) + record(1) + record(2, size=1), INVALID, None, NONE),
    ("short record", record(0) + record(1, size=-1) + record(2), INVALID, None, NONE),
    ("negative record", record(0) + varint(-1) + record(2), INVALID, None, None),
    ("key of -2", record(0) + record(1, key=varint(-2)) + record(2), INVALID, NONE, NONE),
    ("long key", record(0) + record(1, key=varint(500) + b"k") + record(2), INVALID, None, None),
    ("value of -2", record(0) + record(1, value=varint(-2)) + record(2), INVALID, NONE, NONE),
    ("long value", record(0) + record(1, value=varint(5000) + b"k") + record(2), INVALID, None, None),
    ("headers of -1", record(0) + record(1, headers=varint(-1)) + record(2), INVALID, None, None),
    ("many headers", record(0) + record(1, headers=varint(1 << 20)) + record(2), INVALID, None, None),
    ("null header name", record(0) + record(1, headers=b"\2\1\1") + record(2), INVALID, None, None),
    ("header name of no UTF-8", record(0) + record(1, headers=b"\2\2\xff\1") + record(2), NONE, None, None),
    ("varint of 6 bytes", record(0) + b"\x80" * 6 + record(1) + record(2), INVALID, UNKNOWN, None),
    ("far ahead", record(0) + record(1, ahead_ms=10 * YEAR) + record(2), TIMESTAMP, None, None),
    ("far behind", record(0) + record(1, ahead_ms=-60 * YEAR) + record(2), NONE, None, None),
)


def of_codec(
    name: str, body: Callable[[Codec], bytes], *, unseen_by_kafka: tuple[Codec, ...] = ()
) -> list[Case]:
    """Return one case per codec for the same damage, which Kafka, where it notices, answers with
    UNKNOWN_SERVER_ERROR.
    """
    return [
        Case(
            f"{codec.name.lower()} {name}",
            batch(body(codec), codec),
            INVALID,
            NONE if codec in unseen_by_kafka else UNKNOWN,
        )
        for codec in list(Codec)[1:]
    ]


def three(codec: Codec) -> bytes:
    return bytes(compress(codec, THREE))


LARGE = record(0, value=varint(5000) + bytes(5000))
SMALL_RECORDS = {"max.decompressed.message.bytes": "5000"}
WHOLE = (
    Case("raw snappy", batch(bytes(cramjam.snappy.compress_raw(THREE)), Codec.SNAPPY), NONE),
    Case("lz4 with linked blocks", batch(bytes(cramjam.lz4.compress(THREE)), Codec.LZ4), INVALID, UNKNOWN),
    Case("two gzip members", batch(gzip.compress(THREE[:20]) + gzip.compress(THREE[20:]), Codec.GZIP), NONE),
    *of_codec("magic only", lambda codec: three(codec)[:6] + b"garbage" * 9),
    *of_codec("cut off", lambda codec: three(codec)[:-5]),
    *of_codec(
        "with more after it",
        lambda codec: three(codec) + b"rest",
        unseen_by_kafka=(Codec.GZIP, Codec.LZ4),
    ),
    *of_codec("of another codec", lambda codec: THREE),
    Case("codec 5", batch(THREE, attributes=5), CORRUPT, UNKNOWN),
    Case("count of 4", batch(THREE, count=4), INVALID),
    Case("offsets of 4", batch(THREE, last_offset_delta=3), INVALID),
    Case("four records in header", batch(THREE, **of_count(4)), INVALID),
    Case("no records", batch(b"", **of_count(0)), CORRUPT, INVALID),
    Case("control", batch(THREE, attributes=0x20), INVALID),
    Case("append time", batch(THREE, attributes=APPEND_TIME_BIT), TIMESTAMP, NONE),
    Case("newest time too large", batch(THREE, max_timestamp=NOW + 10 * YEAR), NONE),
    Case("newest time too small", batch(THREE, max_timestamp=5), NONE),
    Case("newest time of none", batch(THREE, max_timestamp=-1), NONE),
    Case("no times", batch(THREE, base_timestamp=-1, max_timestamp=-1), NONE),
    Case("negative times", batch(THREE, base_timestamp=-500, max_timestamp=-500), NONE),
    Case("producer without epoch", batch(THREE, producer_id=5), INVALID),
    Case("two batches", batch(THREE) * 2, INVALID),
    Case("wrong CRC", batch(THREE)[:-1] + b"?", CORRUPT),
    Case("cut off", batch(THREE)[:-1], CORRUPT, INVALID),
    Case(
        "keyless",
        batch(record(0) + record(1, key=b"\1") + record(2)),
        INVALID,
        configs={"cleanup.policy": "compact"},
    ),
    Case(
        "large when plain",
        packed(LARGE, Codec.GZIP, **of_count(1)),
        ErrorCode.MESSAGE_TOO_LARGE,
        configs={"max.message.bytes": "1000", "compression.type": "uncompressed"},
    ),
    Case("large record", packed(LARGE, Codec.ZSTD, **of_count(1)), INVALID, configs=SMALL_RECORDS),
    Case("large plain record", batch(LARGE, **of_count(1)), NONE, configs=SMALL_RECORDS),
    *(
        Case(
            f"recompressed {codec.name.lower()}",
            packed(THREE, codec, max_timestamp=7),
            NONE,
            configs={"compression.type": "lz4"},
        )
        for codec in Codec
    ),
)
CASES = (
    *(
        Case(f"{name} in {codec.name.lower()}", packed(body, codec), code, compressed if codec else plain)
        for name, body, code, plain, compressed in BODIES
        for codec in (Codec.NONE, Codec.GZIP, Codec.ZSTD)
    ),
    *WHOLE,
)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    with ApacheKafka(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


class Outcome(NamedTuple):
    """The error code, and the stored batch's maximum timestamp, codec and readable records."""

    code: int
    max_timestamp: int = 0
    codec: Codec = Codec.NONE
    records: list[Record] | None = None


def outcome(broker: LogdProcess | ApacheKafka, case: Case) -> Outcome:
    number = next(NUMBERS)
    topic = create_topic(
        broker, f"t{number}-" + "".join(c if c.isalnum() else "-" for c in case.name), case.configs
    )
    with RawClient(broker.port) as client:
        produced = client.produce(topic, case.batch)
        while produced.error_code in NOT_YET:
            produced = client.produce(topic, case.batch)
        if produced.error_code:
            return Outcome(produced.error_code)
        stored = client.fetch(topic).records
    header = read_header(stored)
    try:
        records = decode_records(stored)
    except CorruptRecordBatch:
        records = None
    return Outcome(0, header.max_timestamp, header.codec, records)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_no_batch_is_kept_that_cannot_be_read(logd: LogdProcess, case: Case) -> None:
    code, max_timestamp, _, records = outcome(logd, case)
    assert code == case.code
    if not code:
        assert records is not None
        assert max_timestamp == max(-1, *(record[1] for record in records))


@needs_kafka
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_as_apache_kafka_answers(kafka: ApacheKafka, logd: LogdProcess, case: Case) -> None:
    theirs = outcome(kafka, case)
    if case.kafkas is None:
        assert theirs == outcome(logd, case)
    else:
        assert theirs.code == case.kafkas
