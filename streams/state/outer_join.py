"""The store of a left or outer join's records without a match so far, in the order in which they are emitted.

    int64 timestamp, ms | uint8 side: 1 left, 0 right | key bytes ...

A value is the list of records of one time, side and key, in order of arrival, as Kafka's ListSerde writes it:

    uint8 1 | int32 count | count times: int32 length | uint8 side | value bytes ...
"""

from __future__ import annotations

import heapq
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from streams.serdes import Serde
from streams.state.backend import Backend
from streams.state.key_value import KeyValueStore
from streams.state.spec import StoreSpec

TIME_AND_SIDE = struct.Struct(">qB")
_HEAD = struct.Struct(">Bi")
_LENGTH = struct.Struct(">i")
_VARIABLE_LENGTHS = 1


class Unmatched(NamedTuple):
    """The records of one time, side and key that have no match."""

    timestamp: int
    is_left: bool
    key: bytes
    values: tuple[Any, ...]


class UnmatchedKeys(Serde[tuple[int, bool, Any]]):
    """The serde of stored keys: timestamp, True for the left side, and key."""

    immutable = True

    def __init__(self, key_serde: Serde[Any]) -> None:
        self._key = key_serde

    def serialize(self, value: tuple[int, bool, Any]) -> bytes:
        timestamp, is_left, key = value
        return TIME_AND_SIDE.pack(timestamp, is_left) + self._key.serialize(key)

    def deserialize(self, data: bytes) -> tuple[int, bool, Any]:
        timestamp, side = TIME_AND_SIDE.unpack_from(data)
        return timestamp, side == 1, self._key.deserialize(data[TIME_AND_SIDE.size :])


class UnmatchedValues(Serde[tuple[tuple[bool, Any], ...]]):
    """The serde of stored values: records, each with True if it is of the left side."""

    def __init__(self, left: Serde[Any], right: Serde[Any]) -> None:
        self._sides = (right, left)
        self.immutable = left.immutable and right.immutable

    def serialize(self, value: tuple[tuple[bool, Any], ...]) -> bytes:
        parts = [_HEAD.pack(_VARIABLE_LENGTHS, len(value))]
        for is_left, each in value:
            data = self._sides[is_left].serialize(each)
            parts += [_LENGTH.pack(1 + len(data)), b"\x01" if is_left else b"\x00", data]
        return b"".join(parts)

    def deserialize(self, data: bytes) -> tuple[tuple[bool, Any], ...]:
        form, count = _HEAD.unpack_from(data)
        if form != _VARIABLE_LENGTHS:
            raise ValueError(f"a list of values begins with {_VARIABLE_LENGTHS}, not {form}")
        values, at = [], _HEAD.size
        for _ in range(count):
            (length,) = _LENGTH.unpack_from(data, at)
            at += _LENGTH.size
            is_left = data[at] == 1
            values.append((is_left, self._sides[is_left].deserialize(data[at + 1 : at + length])))
            at += length
        return tuple(values)


class OuterJoinStore(KeyValueStore[Any, Any]):
    """The store that both sides of one join share in a task: records without a match, and the stream time.

    A record is *closed* once no match can arrive any more: its window and ``grace_ms`` are over. The match of
    a left record may be up to ``after_ms`` later, that of a right record up to ``before_ms``.
    """

    def __init__(self, spec: StoreSpec, backend: Backend) -> None:
        super().__init__(spec, backend)
        self.time = -1
        """Highest timestamp of both sides, ms."""
        self._lowest: int | None = None
        """A lower bound of the stored records' timestamps (ms), None if unknown."""
        self._next_look = 0

    def begin(self, time: int) -> None:
        """Continue from the stream time ``time`` (ms) of an earlier task; call before the first record."""
        self.time = max(self.time, time)
        first = next(self.backend.scan(), None)
        if first is not None:
            self._lowest = TIME_AND_SIDE.unpack_from(first[0])[0]

    def keep(self, key: bytes, value: Any, timestamp: int, *, is_left: bool) -> None:
        """Add a record that has no match."""
        if self._lowest is None or timestamp < self._lowest:
            self._lowest = timestamp
        stored_key = TIME_AND_SIDE.pack(timestamp, is_left) + key
        entry = self.lookup(stored_key)
        earlier = () if entry is None else entry[0]
        self.update(stored_key, (*earlier, (is_left, value)), timestamp)

    def forget(self, key: bytes, timestamp: int, *, is_left: bool, now: int) -> None:
        """Remove the records of this time, side and key, if any: they have a match at ``now`` (ms)."""
        stored_key = TIME_AND_SIDE.pack(timestamp, is_left) + key
        if self.lookup(stored_key) is not None:
            self.update(stored_key, None, now)

    def is_worth_a_look(self, span_ms: int, wall_clock: int, every_ms: int) -> bool:
        """Return True if `take_closed` should be called: records may be closed, and ``every_ms`` are over.

        ``span_ms``: window and grace of the side that calls, ms. ``wall_clock``, ``every_ms``: ms, so that a
        look takes place at most every ``every_ms``. If no lower bound of timestamps is known, a look is due
        unless the span is 0, as in Kafka Streams, whose bound overflows then.
        """
        if self._lowest is None:
            if span_ms <= 0:
                return False
        elif self._lowest + span_ms >= self.time:
            return False
        if wall_clock < self._next_look:
            return False
        self._next_look = wall_clock + every_ms
        return True

    def take_closed(self, before_ms: int, after_ms: int, grace_ms: int) -> list[Unmatched]:
        """Remove and return the closed records, ordered by time, then right before left, then key."""
        closed: list[Unmatched] = []
        left_open = right_open = False
        self._lowest = None
        time = self.time
        for stored_key, values in self._in_order():
            timestamp, side = TIME_AND_SIDE.unpack_from(stored_key)
            self._lowest = timestamp
            if left_open and right_open:
                break
            if timestamp + (after_ms if side else before_ms) + grace_ms >= time:
                left_open, right_open = left_open or side == 1, right_open or side == 0
                continue
            key = stored_key[TIME_AND_SIDE.size :]
            closed.append(Unmatched(timestamp, side == 1, key, tuple(value for _, value in values)))
        for each in closed:
            self.update(TIME_AND_SIDE.pack(each.timestamp, each.is_left) + each.key, None, time)
        return closed

    def _in_order(self) -> Iterator[tuple[bytes, Any]]:
        """Yield stored keys and values in key order; the store must not change meanwhile."""
        last = b""
        stored = (key for key, _ in self.backend.scan())
        for key in heapq.merge(stored, self._changed_keys(None, None)):
            if key != last and (entry := self.lookup(key)) is not None:
                yield key, entry[0]
            last = key
