"""A buffered record or update of a table, and its bytes in the format of Kafka's suppress buffer, version 3.

    int64 timestamp | int64 offset | topic | int32 partition | headers | prior | old | new | int64 time

`topic`, header keys and values, and the three values are preceded by an int32 length, which is -1 for null.
If the old value equals the prior one, it is only the length -2. `headers` begin with their int32 count.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from kafka_client.records import Headers
from streams.serdes.base import Serde

_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
_PLACE = struct.Struct(">qq")
_NULL = -1
_AS_PRIOR = -2


class Buffered(NamedTuple):
    """A buffered record or update of a table, with serialized values."""

    time: int
    """The time (ms) that decides when the record may be forwarded."""
    prior: bytes | None
    """The key's last forwarded value."""
    old: bytes | None
    new: bytes | None
    timestamp: int
    offset: int
    topic: str
    partition: int
    headers: Headers

    @property
    def size(self) -> int:
        """The size in bytes without the key, counted as in Kafka Streams."""
        _, prior, old, new, _, _, topic, _, headers = self
        size = 20 + len(topic) + len(prior or b"") + len(new or b"")  # 20: timestamp, offset and partition
        if old != prior:
            size += len(old or b"")
        for key, value in headers:
            size += len(key) + len(value or b"")
        return size


class BufferedSerde(Serde[Buffered]):
    """The serde of buffered records."""

    immutable = True

    def serialize(self, value: Buffered) -> bytes:
        parts = [_PLACE.pack(value.timestamp, value.offset), _sized(value.topic.encode())]
        parts += (_INT32.pack(value.partition), _INT32.pack(len(value.headers)))
        for key, data in value.headers:
            parts += (_sized(key.encode()), _sized(data))
        same = value.old is not None and value.old == value.prior
        parts += (_sized(value.prior), _INT32.pack(_AS_PRIOR) if same else _sized(value.old))
        parts += (_sized(value.new), _INT64.pack(value.time))
        return b"".join(parts)

    def deserialize(self, data: bytes) -> Buffered:
        timestamp, offset = _PLACE.unpack_from(data)
        topic, at = _read(data, _PLACE.size)
        (partition,) = _INT32.unpack_from(data, at)
        headers, at = _read_headers(data, at + _INT32.size)
        prior, at = _read(data, at)
        if _INT32.unpack_from(data, at)[0] == _AS_PRIOR:
            old, at = prior, at + _INT32.size
        else:
            old, at = _read(data, at)
        new, at = _read(data, at)
        (time,) = _INT64.unpack_from(data, at)
        return Buffered(time, prior, old, new, timestamp, offset, (topic or b"").decode(), partition, headers)


def _sized(data: bytes | None) -> bytes:
    return _INT32.pack(_NULL) if data is None else _INT32.pack(len(data)) + data


def _read(data: bytes, at: int) -> tuple[bytes | None, int]:
    (length,) = _INT32.unpack_from(data, at)
    begin = at + _INT32.size
    if length == _NULL:
        return None, begin
    if not 0 <= length <= len(data) - begin:
        raise ValueError(
            f"a buffered update has a length of {length} where {len(data) - begin} bytes are left"
        )
    return data[begin : begin + length], begin + length


def _read_headers(data: bytes, at: int) -> tuple[Headers, int]:
    (count,) = _INT32.unpack_from(data, at)
    at += _INT32.size
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        key, at = _read(data, at)
        value, at = _read(data, at)
        headers.append(((key or b"").decode(), value))
    return tuple(headers), at
