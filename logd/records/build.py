"""Record batches written: from new records, from decoded ones (compaction), and stamped anew.

A record inside a batch (every length and delta a zigzag varint):

    length │ attributes = 0 │ timestamp delta │ offset delta │ key length, key │ value length, value
           │ header count │ (name length, name │ value length, value)*

A length of -1 is null. The batch header is drawn in `header`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from logd.records.compression import Codec, compress
from logd.records.crc import crc32c
from logd.records.header import (
    APPEND_TIME_BIT,
    CODEC_MASK,
    CONTROL_BIT,
    CRC_START,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    BatchHeader,
    Buffer,
)
from logd.records.varint import TABLE, TABLE_SIZE, varint

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]
NewRecord: TypeAlias = tuple[int, bytes | None, bytes | None, Headers]
"""Timestamp ms, key, value, headers."""
Record: TypeAlias = tuple[int, int, bytes | None, bytes | None, Headers]
"""Offset, timestamp ms, key, value, headers."""

_RECORD_OVERHEAD = 5 + 1 + 10 + 5 + 5 + 5 + 5
_HEADER_OVERHEAD = 5 + 5


def build_batch(
    records: Sequence[NewRecord],
    *,
    base_offset: int = 0,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
    leader_epoch: int = NO_LEADER_EPOCH,
) -> bytes:
    """One batch of `records`, which must not be empty, with offsets from `base_offset` on."""
    if not records:
        raise ValueError("a batch needs a record")
    base_timestamp = records[0][0]
    body = compress(codec, b"".join(_encode_new(records, base_timestamp)), level)
    count = len(records)
    return seal(
        BatchHeader(
            base_offset,
            HEADER_SIZE - LOG_OVERHEAD + len(body),
            leader_epoch,
            MAGIC,
            0,
            codec | (TRANSACTIONAL_BIT if transactional else 0) | (CONTROL_BIT if control else 0),
            count - 1,
            base_timestamp,
            max([record[0] for record in records]),
            producer_id,
            producer_epoch,
            base_sequence,
            count,
        ),
        body,
    )


def rebuild_batch(
    header: BatchHeader,
    records: Sequence[Record],
    *,
    codec: Codec | None = None,
    level: int | None = None,
) -> bytes:
    """The batch of `header` with only `records` of its own left, their offsets and its ends kept.

    For compaction, where no record may be left at all, and for another `codec`. The base timestamp
    stays what it was; the max timestamp follows the records unless it is the log append time.
    """
    codec = header.codec if codec is None else codec
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    kept = ((offset - base_offset, (time, key, value, hs)) for offset, time, key, value, hs in records)
    body = b"".join(_encode(kept, base_timestamp))
    if records:
        body = compress(codec, body, level)
    if header.timestamp_type:
        max_timestamp = header.max_timestamp
    else:
        max_timestamp = max((record[1] for record in records), default=NO_TIMESTAMP)
    return seal(
        header._replace(
            batch_length=HEADER_SIZE - LOG_OVERHEAD + len(body),
            attributes=header.attributes & ~CODEC_MASK | (codec if records else 0),
            max_timestamp=max_timestamp,
            count=len(records),
        ),
        body,
    )


def restamp(
    batch: Buffer,
    header: BatchHeader,
    *,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    base_offset: int = 0,
    leader_epoch: int = NO_LEADER_EPOCH,
    transactional: bool = False,
) -> bytes:
    """The whole batch of `header`, which `batch` begins with, as if another producer had built it.

    For passing batches on to another cluster: records stay compressed, the CRC is new. The transactional, the
    timestamp-type and the delete-horizon bit are cleared. The delete horizon (KIP-534) was the other cluster
    cleaner's to set; the base timestamp that says it stays, since the records' times are counted from it
    (Kafka's MemoryRecordsBuilder), and means nothing else any more. The caller keeps back what a broker would
    refuse (control batches, compacted batches: rebuild those) and rebuilds batches of log append time
    where readers shall see that time further on.
    """
    attributes = header.attributes & ~(TRANSACTIONAL_BIT | APPEND_TIME_BIT | DELETE_HORIZON_BIT)
    return seal(
        header._replace(
            base_offset=base_offset,
            partition_leader_epoch=leader_epoch,
            attributes=attributes | (TRANSACTIONAL_BIT if transactional else 0),
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
        ),
        memoryview(batch)[HEADER_SIZE : header.size],
    )


def estimate_size(record: NewRecord) -> int:
    """At most how many bytes `record` takes in an uncompressed batch (its share of the header left out)."""
    return estimate_sizes((record,))[0]


def estimate_sizes(records: Iterable[NewRecord]) -> list[int]:
    """The `estimate_size` of each."""
    overhead = _RECORD_OVERHEAD
    return [
        overhead + len(key or b"") + len(value or b"") + (_size_of_headers(headers) if headers else 0)
        for _, key, value, headers in records
    ]


def _size_of_headers(headers: Headers) -> int:
    # A character takes at most four bytes of UTF-8.
    return sum([_HEADER_OVERHEAD + 4 * len(name) + len(data or b"") for name, data in headers])


def seal(header: BatchHeader, body: Buffer) -> bytes:
    """Header and body as one batch with its CRC, the body copied once."""
    packed = bytearray(HEADER.pack(*header))
    crc = crc32c(body, crc32c(memoryview(packed)[CRC_START:]))
    packed[17:21] = crc.to_bytes(4, "big")
    return b"".join((packed, body))


def _encode_new(records: Sequence[NewRecord], base_timestamp: int) -> list[bytes]:
    """New records as parts to be joined."""
    first = records if len(records) <= TABLE_SIZE else records[:TABLE_SIZE]
    try:
        parts = _encode_short(first, base_timestamp)
    except IndexError:  # one of them has more than the table
        return _encode(enumerate(records), base_timestamp)
    if first is not records:
        parts += _encode(enumerate(records[TABLE_SIZE:], TABLE_SIZE), base_timestamp)
    return parts


def _encode_short(records: Sequence[NewRecord], base_timestamp: int) -> list[bytes]:
    """What `_encode` makes of records whose sizes are all in the table, as almost always; or IndexError.

    Records often have their neighbour's timestamp, and some their neighbour's headers.
    """
    table, limit, join = TABLE, TABLE_SIZE, b"".join
    parts: list[bytes] = []
    append = parts.append
    last, time = base_timestamp, b"\0"
    named: Headers = ()
    names = b"\0"
    for (timestamp, key, value, headers), delta in zip(records, table, strict=False):
        if timestamp != last:
            last, elapsed = timestamp, timestamp - base_timestamp
            time = table[elapsed] if 0 <= elapsed < limit else varint(elapsed)
        if headers is not named:
            named, names = headers, _encode_headers(headers)
        body = join(
            (
                b"\0",
                time,
                delta,
                b"\1" if key is None else table[len(key)],
                key or b"",
                b"\1" if value is None else table[len(value)],
                value or b"",
                names,
            )
        )
        append(table[len(body)])
        append(body)
    return parts


def _encode(records: Iterable[tuple[int, NewRecord]], base_timestamp: int) -> list[bytes]:
    """The records as parts to be joined; each comes with its offset delta."""
    table, limit, join = TABLE, TABLE_SIZE, b"".join
    parts: list[bytes] = []
    append = parts.append
    for delta, (timestamp, key, value, headers) in records:
        elapsed = timestamp - base_timestamp
        if key is None:
            key, key_size = b"", b"\1"
        else:
            size = len(key)
            key_size = table[size] if size < limit else varint(size)
        if value is None:
            value, value_size = b"", b"\1"
        else:
            size = len(value)
            value_size = table[size] if size < limit else varint(size)
        body = join(
            (
                b"\0",
                table[elapsed] if 0 <= elapsed < limit else varint(elapsed),
                table[delta] if delta < limit else varint(delta),
                key_size,
                key,
                value_size,
                value,
                _encode_headers(headers) if headers else b"\0",
            )
        )
        size = len(body)
        append(table[size] if size < limit else varint(size))
        append(body)
    return parts


def _encode_headers(headers: Headers) -> bytes:
    parts = [_size(len(headers))]
    for name, data in headers:
        encoded = name.encode()
        parts += (_size(len(encoded)), encoded)
        if data is None:
            parts.append(b"\1")
        else:
            parts += (_size(len(data)), data)
    return b"".join(parts)


def _size(size: int) -> bytes:
    return TABLE[size] if size < TABLE_SIZE else varint(size)
