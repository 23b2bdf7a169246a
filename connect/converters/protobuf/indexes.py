"""Message indexes: where in its file the message is whose bytes follow.

    varint count, varint position in the file, varint position within that message, ...

All numbers are zigzag varints. A single zero byte is short for [0], the file's first message.
"""

from __future__ import annotations

from collections.abc import Sequence

from connect.errors import DataError
from kafka_client.errors import CorruptRecordBatch
from kafka_client.records.varint import read_zigzag, varint

DEPTH_MAX = 32
"""The most messages within each other, protoc's own limit."""


def write_indexes(indexes: Sequence[int]) -> bytes:
    """Return the bytes of message indexes."""
    if list(indexes) == [0]:
        return b"\0"
    return b"".join(map(varint, (len(indexes), *indexes)))


def read_indexes(topic: str, data: bytes) -> tuple[tuple[int, ...], bytes]:
    """Return the message indexes, and the bytes behind them.

    Raises DataError if they end early, are negative, or are more than the deepest message has.
    """
    try:
        raw, begin = read_zigzag(data, 0)
        if raw & 1 or raw >> 1 > DEPTH_MAX:
            raise DataError(f"record of topic {topic} has no message indexes before its Protobuf message")
        indexes = []
        for _ in range(raw >> 1):
            number, begin = read_zigzag(data, begin)
            indexes.append(-1 if number & 1 else number >> 1)
    except (IndexError, CorruptRecordBatch):
        raise DataError(f"record of topic {topic} ends within its message indexes") from None
    return tuple(indexes) or (0,), data[begin:]
