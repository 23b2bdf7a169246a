"""Record batches read for each key's last value, as a store is restored from its changelog.

`decode` makes a tuple of every record. Here each record's value goes straight into a dict, with the record's
timestamp before it, as Kafka Streams' timestamped stores keep it:

    int64 timestamp, ms | value bytes ...

Offsets and headers are passed over, unread: a record says where it ends. The CRC is the caller's to check.
"""

from __future__ import annotations

import struct

from logd.errors import CorruptRecordBatch
from logd.records.decode import check_null, read_body
from logd.records.header import BatchHeader, Buffer
from logd.records.varint import read_zigzag

_TIMESTAMP = struct.Struct(">q")


def decode_latest(buffer: Buffer, header: BatchHeader, latest: dict[bytes, bytes | None]) -> int:
    """Put what each key has last into `latest`, None for a tombstone, over what it has already.

    `buffer` begins with the batch. Records without a key are left out; how many have one is returned. Raises
    CorruptRecordBatch, and `latest` may have some of the records then.
    """
    body = read_body(buffer, 0, header)
    try:
        return _decode(body, header, latest)
    except IndexError:
        raise CorruptRecordBatch("a record is cut off") from None
    except struct.error:
        raise CorruptRecordBatch("a timestamp is not of 64 bits") from None


def _decode(body: bytes, header: BatchHeader, latest: dict[bytes, bytes | None]) -> int:
    """Straight down the body, as `decode` does it. Records often have their neighbour's timestamp."""
    base, pack = header.base_timestamp, _TIMESTAMP.pack
    append_time = pack(header.max_timestamp) if header.timestamp_type else None
    stamp, stamped = append_time or pack(base), 0
    end, pos, keyed = len(body), 0, header.count
    for _ in range(header.count):
        raw = body[pos]
        if raw < 0x80:
            pos += 1
        elif (high := body[pos + 1]) < 0x80:
            raw += (high << 7) - 0x80
            pos += 2
        else:
            raw, pos = read_zigzag(body, pos)
        stop = pos + (raw >> 1)
        if raw & 1 or stop > end:
            raise CorruptRecordBatch(f"a record ends at byte {stop} of {end}")
        time = body[pos + 1]  # behind the attributes, of which there are none
        if time < 0x80:
            pos += 2
        elif (high := body[pos + 2]) < 0x80:
            time += (high << 7) - 0x80
            pos += 3
        else:
            time, pos = read_zigzag(body, pos + 1)
        if time != stamped and append_time is None:
            stamp, stamped = pack(base + ((time >> 1) ^ -(time & 1))), time
        if body[pos] < 0x80:  # the offset
            pos += 1
        elif body[pos + 1] < 0x80:
            pos += 2
        else:
            _, pos = read_zigzag(body, pos)
        raw = body[pos]
        if raw < 0x80:
            pos += 1
        else:
            raw, pos = read_zigzag(body, pos)
        if raw & 1:
            check_null(raw, "key")
            keyed -= 1
            pos = stop
            continue
        key = body[pos : (pos := pos + (raw >> 1))]
        raw = body[pos]
        if raw < 0x80:
            pos += 1
        elif (high := body[pos + 1]) < 0x80:
            raw += (high << 7) - 0x80
            pos += 2
        else:
            raw, pos = read_zigzag(body, pos)
        if raw & 1:
            check_null(raw, "value")
            latest[key] = None
        else:
            latest[key] = stamp + body[pos : (pos := pos + (raw >> 1))]
        if pos >= stop:  # The number of headers is a byte at least.
            raise CorruptRecordBatch(f"a record ends at byte {pos}, its length says {stop}")
        pos = stop
    if pos != end:
        raise CorruptRecordBatch(f"{end - pos} bytes after the last of {header.count} records")
    return keyed
