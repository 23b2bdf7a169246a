"""Produce, by hand: records go through as memoryviews, and little else is made an object of.

A broker reads requests with `decode_produce_request` and answers with `encode_produce_response`; a
client sends what `encode_produce_request` gives and reads the answer as the compiled
`kafka_client.wire.messages.produce.ProduceResponse`. Versions 3 to 13: flexible from 9, topic ids in place
of names from 13, so that a topic here is a str or 16 raw bytes.

This module is compiled by Cython, since a broker reads every batch's request here. It also runs as plain
Python, only slower.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from kafka_client.errors import MalformedMessage
from kafka_client.wire import primitives
from kafka_client.wire.api_keys import ApiKey
from kafka_client.wire.headers import encode_request_header
from kafka_client.wire.node_endpoints import NodeEndpoint, node_endpoints_tag
from kafka_client.wire.primitives import (
    Nonsense,
    compact_string,
    nullable_compact_string,
    nullable_string,
    string,
)

try:
    from kafka_client import without_cython as cython
except ModuleNotFoundError:
    import cython  # type: ignore[no-redef]  # never run: it tells Cython that the name is its own

if cython.compiled:
    from cython.cimports.libc.string import memcpy

Buffer: TypeAlias = bytes | bytearray | memoryview
Topic: TypeAlias = str | bytes
"""A topic's name, or its id from the first version with ids on."""

VERSIONS: Final = (3, 13)
FLEXIBLE: Final = 9
TOPIC_IDS: Final = 13
"""First version that names topics by their ids."""
LEADERS: Final = 10
"""First version that tells current leaders (KIP-951)."""

_INT32 = struct.Struct(">i")
_SETTINGS = struct.Struct(">hi")  # acks, timeout
_LEADER = struct.Struct(">BBBiix")  # one tagged field, number 0, of so many bytes: leader, leader epoch
_LEADER_TAG = (1, 0, 9)
_FRAME_SIZE = cython.declare(cython.Py_ssize_t, 8)
"""Bytes of a response's length and correlation id."""
_FIELDS_SIZE = cython.declare(cython.Py_ssize_t, 4 + 2 + 8 + 8 + 8)
"""Bytes of a partition's response before the errors of its records."""


class ReceivedProduce(NamedTuple):
    """A producer's request. Its records are views of the buffer that it was read from."""

    transactional_id: str | None
    acks: int
    timeout_ms: int
    topics: list[tuple[Topic, list[tuple[int, memoryview]]]]
    """By topic: (partition, records); null records are an empty view."""


class PartitionProduced(NamedTuple):
    """The response for a partition."""

    partition: int
    error_code: int = 0
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    error_message: str | None = None
    record_errors: Sequence[tuple[int, str | None]] = ()
    """(index of the record in its batch, what is wrong with it), from version 8 on."""
    leader: tuple[int, int] | None = None
    """(leader, leader epoch) beside an error that another broker would not give, from version 10 on."""


def decode_produce_request(
    buffer: Buffer, version: int, pos: int = 0, end: int | None = None
) -> ReceivedProduce:
    """Read the body of a request, which is `buffer[pos:end]`; MalformedMessage if it is not exactly one."""
    view = memoryview(buffer)
    try:
        body = _Body(view, pos, len(view) if end is None else end, version)
        return body.request()
    except (Nonsense, UnicodeDecodeError) as error:
        raise MalformedMessage(f"ProduceRequest v{version}: {error}") from None


@cython.final
@cython.cclass
class _Body:
    """The body of a request, and a place in it. All methods raise Nonsense where the bytes cannot be one."""

    _view: Any
    _bytes: cython.const[cython.uchar][::1]  # type: ignore[valid-type]
    _pos: cython.Py_ssize_t
    _end: cython.Py_ssize_t
    _flexible: cython.bint
    _has_ids: cython.bint

    def __init__(self, view: memoryview, pos: int, end: int, version: int) -> None:
        """Read the body `view[pos:end]`."""
        self._view = view
        self._bytes = view
        self._pos = pos
        self._end = end
        self._flexible = version >= FLEXIBLE
        self._has_ids = version >= TOPIC_IDS

    def request(self) -> ReceivedProduce:
        """Read all of it. Raises UnicodeDecodeError as well."""
        transactional_id = self._text()
        acks: cython.int = self._int(2)
        timeout_ms: cython.int = self._int(4)
        topics: list[tuple[Topic, list[tuple[int, memoryview]]]] = []
        for _ in range(self._array(3 if self._flexible else 6)):
            topic: Any = self._uuid() if self._has_ids else self._text()
            if topic is None:
                raise Nonsense("null where a string has to be")
            partitions: list[tuple[int, memoryview]] = []
            for _ in range(self._array(6 if self._flexible else 8)):
                index: cython.int = self._int(4)
                partitions.append((index, self._records()))
                self._skip_tags()
            topics.append((topic, partitions))
            self._skip_tags()
        self._skip_tags()
        if self._pos != self._end:
            raise Nonsense(f"{self._end - self._pos} bytes after its end")
        return ReceivedProduce(transactional_id, acks, timeout_ms, topics)

    @cython.cfunc
    def _need(self, size: cython.Py_ssize_t, what: Any) -> cython.Py_ssize_t:
        """Return the place of the next `size` bytes, and go on after them."""
        if size > self._end - self._pos:
            raise Nonsense(f"{what} of {size} bytes, {self._end - self._pos} are left")
        self._pos += size
        return self._pos - size

    @cython.cfunc
    def _int(self, size: cython.int) -> cython.longlong:
        """Read a signed number of `size` bytes."""
        pos: cython.Py_ssize_t = self._need(size, "a number")
        if not cython.compiled:
            return int.from_bytes(self._bytes[pos : pos + size], "big", signed=True)
        value: cython.longlong = self._bytes[pos]
        if value > 0x7F:
            value -= 0x100
        place: cython.Py_ssize_t
        for place in range(pos + 1, pos + size):
            value = value * 0x100 + self._bytes[place]
        return value

    @cython.cfunc
    def _uvarint(self) -> cython.longlong:
        """Read an unsigned varint of at most 32 bits."""
        value: cython.longlong = 0
        shift: cython.int = 0
        while shift < 35:
            byte: cython.longlong = self._bytes[self._need(1, "a number")]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value >> 32:
                    break
                return value
            shift += 7
        raise Nonsense("an unsigned varint of more than 32 bits")

    @cython.cfunc
    def _length(self, size: cython.int) -> cython.longlong:
        """Read the length in front of a field, of `size` bytes in old versions; negative for null."""
        if self._flexible:
            return self._uvarint() - 1
        return self._int(size)

    @cython.cfunc
    def _array(self, smallest: cython.int) -> cython.longlong:
        """Read how many elements, of `smallest` bytes at least, an array has that is not null."""
        count: cython.longlong = self._length(4)
        primitives.check_length(count, smallest, self._end - self._pos)
        return count

    @cython.cfunc
    def _text(self) -> Any:
        size: cython.longlong = self._length(2)
        if size < 0:
            return None
        pos: cython.Py_ssize_t = self._need(size, "a string")
        if cython.compiled:
            return cython.address(self._bytes[0])[pos : pos + size].decode("utf-8")
        return str(self._view[pos : pos + size], "utf-8")

    @cython.cfunc
    def _uuid(self) -> Any:
        pos: cython.Py_ssize_t = self._need(16, "a uuid")
        return bytes(self._view[pos : pos + 16])

    @cython.cfunc
    def _records(self) -> Any:
        size: cython.longlong = self._length(4)
        if size < 0:
            size = 0
        pos: cython.Py_ssize_t = self._need(size, "records")
        return self._view[pos : pos + size]

    @cython.cfunc
    def _skip_tags(self) -> None:
        if not self._flexible:
            return
        count: cython.longlong = self._uvarint()
        if count:
            primitives.check_tagged(count)
        for _ in range(count):
            self._uvarint()
            self._need(self._uvarint(), "a tag")


@cython.final
@cython.cclass
class _Frame:
    """Bytes being written: `out[:pos]` are there."""

    out: bytearray
    pos: cython.Py_ssize_t

    def __init__(self) -> None:
        self.out = bytearray(128)
        self.pos = 0

    @cython.cfunc
    def need(self, size: cython.Py_ssize_t) -> None:
        """Have room for `size` bytes more."""
        if self.pos + size > len(self.out):
            self.out.extend(bytes(len(self.out) + size))

    @cython.cfunc
    def put(self, data: bytes) -> None:
        """Write bytes."""
        size: cython.Py_ssize_t = len(data)
        self.need(size)
        if cython.compiled:
            to: cython.p_uchar = self.out
            source: cython.p_const_uchar = data
            memcpy(to + self.pos, source, size)
        else:
            self.out[self.pos : self.pos + size] = data
        self.pos += size

    @cython.cfunc
    def put_int(self, value: cython.longlong, size: cython.int) -> None:
        """Write a signed number of `size` bytes."""
        self.need(size)
        start: cython.Py_ssize_t = self.pos
        self.pos += size
        if not cython.compiled:
            self.out[start : self.pos] = value.to_bytes(size, "big", signed=True)
            return
        to: cython.p_uchar = self.out
        place: cython.Py_ssize_t
        for place in range(self.pos - 1, start - 1, -1):
            to[place] = value & 0xFF
            value >>= 8

    @cython.cfunc
    def put_length(self, count: cython.ulonglong, flexible: cython.bint) -> None:
        """Write the length in front of an array of `count` elements."""
        if not flexible:
            self.put_int(count, 4)
            return
        self.put(primitives.uvarint(count + 1))


def encode_produce_response(
    topics: Sequence[tuple[Topic, Sequence[PartitionProduced]]],
    version: int,
    correlation_id: int,
    throttle_time_ms: int = 0,
    nodes: Sequence[NodeEndpoint] = (),
) -> bytes:
    """Encode the response frame with its length; `nodes`: addresses of the leaders named in `topics`."""
    flexible = version >= FLEXIBLE
    frame = _Frame()
    frame.pos = _FRAME_SIZE
    if flexible:
        frame.put(b"\0")
    frame.put_length(len(topics), flexible)
    for topic, partitions in topics:
        frame.put(_topic(topic, flexible))
        frame.put_length(len(partitions), flexible)
        for produced in partitions:
            _put_partition(frame, produced, version)
        if flexible:
            frame.put(b"\0")
    frame.put_int(throttle_time_ms, 4)
    if flexible:
        frame.put(node_endpoints_tag(nodes if version >= LEADERS else ()))
    size: cython.Py_ssize_t = frame.pos
    frame.pos = 0
    frame.put_int(size - 4, 4)
    frame.put_int(correlation_id, 4)
    return bytes(frame.out[:size])


@cython.cfunc
def _put_partition(frame: _Frame, produced: Any, version: cython.int) -> None:
    fields: Any = cython.cast(tuple, produced)
    frame.need(_FIELDS_SIZE)
    frame.put_int(fields[0], 4)
    frame.put_int(fields[1], 2)
    frame.put_int(fields[2], 8)
    frame.put_int(fields[3], 8)
    if version >= 5:
        frame.put_int(fields[4], 8)
    if version >= 8:
        has_details = fields[5] is not None or fields[6] or fields[7] is not None
        frame.put(_details(produced, version) if has_details else _NO_DETAILS[version >= FLEXIBLE])


_NO_DETAILS: Final = (b"\0\0\0\0\xff\xff", b"\1\0\0")
"""No record errors, no message, and in flexible versions no tags."""


def _details(produced: PartitionProduced, version: int) -> bytes:
    """Return what there is to say about a partition's records, and its tags."""
    flexible = version >= FLEXIBLE
    text = nullable_compact_string if flexible else nullable_string
    parts = [primitives.array_length(len(produced.record_errors), flexible)]
    for index, message in produced.record_errors:
        parts += (_INT32.pack(index), text(message), b"\0" if flexible else b"")
    parts.append(text(produced.error_message))
    if flexible:
        leader = produced.leader if version >= LEADERS else None
        parts.append(b"\0" if leader is None else _LEADER.pack(*_LEADER_TAG, *leader))
    return b"".join(parts)


def encode_produce_request(
    topics: Sequence[tuple[Topic, Sequence[tuple[int, Buffer]]]],
    version: int,
    correlation_id: int,
    client_id: str | None,
    *,
    transactional_id: str | None = None,
    acks: int = -1,
    timeout_ms: int = 30_000,
) -> list[Buffer]:
    """Encode a request frame as chunks to send in order; batches are among them, not copied.

    `topics` is by topic: (partition, one whole batch).
    """
    flexible = version >= FLEXIBLE
    header = encode_request_header(ApiKey.PRODUCE, version, correlation_id, client_id, flexible=flexible)
    text = nullable_compact_string if flexible else nullable_string
    pending = bytearray(header)
    pending += text(transactional_id) + _SETTINGS.pack(acks, timeout_ms)
    pending += primitives.array_length(len(topics), flexible)
    chunks: list[Buffer] = []
    size = 0
    for topic, partitions in topics:
        pending += _topic(topic, flexible) + primitives.array_length(len(partitions), flexible)
        for index, batch in partitions:
            pending += _INT32.pack(index) + primitives.array_length(len(batch), flexible)
            chunks += (pending, batch)
            size += len(pending) + len(batch)
            pending = bytearray(b"\0" if flexible else b"")
        if flexible:
            pending += b"\0"
    if flexible:
        pending += b"\0"
    return [_INT32.pack(size + len(pending)), *chunks, *([pending] if pending else ())]


def _topic(topic: Topic, flexible: bool) -> bytes:
    if isinstance(topic, bytes):
        return primitives.uuid(topic)
    return compact_string(topic) if flexible else string(topic)
