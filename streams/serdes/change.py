"""Changes of a table in the repartition topic of a regrouped table, in Kafka's format.

    old value ...                                    | 0
    new value ...                                    | 1
    varint length of the new value | new ... | old ... | 2

A null value is left out; at most one of both is null.
"""

from __future__ import annotations

from typing import Any

from kafka_client.records.varint import read_zigzag, varint
from streams.serdes.base import Serde

OLD, NEW, BOTH = range(3)
"""The values of the last byte: which of both values are present."""


class ChangeSerde(Serde[tuple[Any, Any]]):
    """Pairs of new and old value, both of the inner serde."""

    def __init__(self, inner: Serde[Any]) -> None:
        self.inner = inner
        self.immutable = inner.immutable

    def serialize(self, value: tuple[Any, Any]) -> bytes:
        new, old = value
        if old is None:
            return self.inner.serialize(new) + bytes((NEW,))
        if new is None:
            return self.inner.serialize(old) + bytes((OLD,))
        written = self.inner.serialize(new)
        return varint(len(written)) + written + self.inner.serialize(old) + bytes((BOTH,))

    def deserialize(self, data: bytes) -> tuple[Any, Any]:
        what, read = data[-1], self.inner.deserialize
        if what == NEW:
            return read(data[:-1]), None
        if what == OLD:
            return None, read(data[:-1])
        if what != BOTH:
            raise ValueError(f"a change ends with {OLD}, {NEW} or {BOTH}, not with {what}")
        zigzag, begin = read_zigzag(data, 0)
        end = begin + zigzag // 2
        return read(data[begin:end]), read(data[end:-1])
