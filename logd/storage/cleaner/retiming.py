"""Records whose timestamps are counted from another base timestamp. A record is drawn in `records.reader`."""

from __future__ import annotations

from kafka_client.records.varint import read_zigzag, varint


def retime(records: bytes, shift: int) -> bytes:
    """Return the records of a batch with every timestamp delta changed by `shift` ms.

    `records` are sound: a reader has walked them.
    """
    retimed: list[bytes] = []
    pos, end = 0, len(records)
    while pos < end:
        length, pos = read_zigzag(records, pos)
        stop = pos + (length >> 1)
        time, rest = read_zigzag(records, pos + 1)
        delta = (time >> 1) ^ -(time & 1)
        record = b"".join((records[pos : pos + 1], varint(delta + shift), records[rest:stop]))
        retimed += (varint(len(record)), record)
        pos = stop
    return b"".join(retimed)
