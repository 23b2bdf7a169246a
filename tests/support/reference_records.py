"""A slow and plain decoder of records, written from Kafka's format alone: the compiled reader's oracle.

It reads what is sound and raises ValueError or IndexError for the rest.
"""

from __future__ import annotations

from kafka_client.records.header import BatchHeader
from kafka_client.records.record import Headers, Record


class _Bytes:
    def __init__(self, data: bytes) -> None:
        self.data, self.pos = data, 0

    def take(self, size: int) -> bytes:
        if size > len(self.data) - self.pos:
            raise ValueError("cut off")
        self.pos += size
        return self.data[self.pos - size : self.pos]

    def number(self, bits: int) -> int:
        value = 0
        for shift in range(0, bits, 7):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value >> bits:
                    raise ValueError("too many bits")
                return (value >> 1) ^ -(value & 1)
        raise ValueError("too long")

    def field(self) -> bytes | None:
        size = self.number(32)
        if size < -1:
            raise ValueError("a negative length")
        return None if size < 0 else self.take(size)


def reference_records(body: bytes, header: BatchHeader) -> list[Record]:
    """Return the records of a decompressed body."""
    rest, records = _Bytes(body), []
    for _ in range(header.count):
        size = rest.number(32)
        if size < 0:
            raise ValueError("a negative length")
        records.append(_record(_Bytes(rest.take(size)), header))
    if rest.pos != len(body):
        raise ValueError("bytes after the last record")
    return records


def _record(of: _Bytes, header: BatchHeader) -> Record:
    of.take(1)
    timestamp = header.base_timestamp + of.number(64)
    if header.timestamp_type:
        timestamp = header.max_timestamp
    offset = header.base_offset + of.number(32)
    if not all(-(1 << 63) <= number < 1 << 63 for number in (timestamp, offset)):
        raise ValueError("beyond 64 bits")
    key, value = of.field(), of.field()
    headers: list[tuple[str, bytes | None]] = []
    count = of.number(32)
    if count < 0:
        raise ValueError("a negative count")
    for _ in range(count):
        name = of.field()
        if name is None:
            raise ValueError("no name")
        headers.append((name.decode("utf-8", "replace"), of.field()))
    if of.pos != len(of.data):
        raise ValueError("bytes after the headers")
    named: Headers = tuple(headers)
    return offset, timestamp, key, value, named
