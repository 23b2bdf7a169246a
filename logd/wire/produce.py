"""Produce, by hand: records go through as memoryviews, and little else is made an object of.

A broker reads requests with `decode_produce_request` and answers with `encode_produce_response`; a
client sends what `encode_produce_request` gives and reads the answer as the compiled
`logd.wire.messages.produce.ProduceResponse`. Versions 3 to 13: flexible from 9, topic ids in place
of names from 13, so that a topic here is a str or 16 raw bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

from logd.errors import MalformedMessage
from logd.wire import primitives
from logd.wire.api_keys import ApiKey
from logd.wire.headers import encode_request_header
from logd.wire.node_endpoints import NodeEndpoint, node_endpoints_tag
from logd.wire.primitives import (
    FAILURES,
    Nonsense,
    compact_string,
    nullable_compact_string,
    nullable_string,
    read_array,
    read_nullable_string,
    read_records,
    read_string,
    read_uuid,
    read_uvarint,
    skip_tags,
    string,
)

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
_PARTITION = struct.Struct(">ii")  # index, size of the records

_USUAL = struct.Struct(">BhiBB")  # transactional id, acks, timeout, topics, first byte of the topic
_USUAL_PARTITION = struct.Struct(">BiB")  # partitions, index, first byte of the records' size
_NO_TAGS = b"\0\0\0"
"""The tags of partition, topic and request, when there are none."""

_FRAME = struct.Struct(">ii")  # length of what follows, correlation id
_PRODUCED = {True: struct.Struct(">ihqqq"), False: struct.Struct(">ihqq")}
"""Partition, error, base offset, append time, and (from version 5 on) log start offset."""
_LEADER = struct.Struct(">BBBiix")  # one tagged field, number 0, of so many bytes: leader, leader epoch
_LEADER_TAG = (1, 0, 9)
_ONE_FLEXIBLE = struct.Struct(">ihqqqBBBBiB")
"""One partition, no record errors, no message, tags of partition and topic, throttle time, tags."""


class ReceivedProduce(NamedTuple):
    """What a producer sent. The records are views of the buffer it was read from."""

    transactional_id: str | None
    acks: int
    timeout_ms: int
    topics: list[tuple[Topic, list[tuple[int, memoryview]]]]
    """By topic: (partition, records); null records are an empty view."""


class PartitionProduced(NamedTuple):
    """The answer for one partition."""

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
    view = memoryview(buffer)[pos:end]
    try:
        if version >= FLEXIBLE and (usual := _decode_usual(view, version)) is not None:
            return usual
        request, pos = _decode_flexible(view, version) if version >= FLEXIBLE else _decode_plain(view)
        if pos != len(view):
            raise Nonsense(f"{len(view) - pos} bytes after its end")
    except FAILURES as error:
        raise MalformedMessage(f"ProduceRequest v{version}: {error}") from None
    return request


def _decode_usual(view: memoryview, version: int) -> ReceivedProduce | None:
    """What nearly every request is: no transaction, one topic, one partition, no tags; None for others.

    Small requests live by the time their parsing takes: this takes a third of `_decode_flexible`.
    """
    no_transaction, acks, timeout_ms, topics, size = _USUAL.unpack_from(view)
    pos = 24 if version >= TOPIC_IDS else 8 + size
    if no_transaction or topics != 2 or pos + _USUAL_PARTITION.size >= len(view):
        return None
    topic: Topic
    if version >= TOPIC_IDS:
        topic = bytes(view[8:24])
    elif 0 < size < 128:
        topic = str(view[9:pos], "utf-8")
    else:
        return None
    partitions, index, size = _USUAL_PARTITION.unpack_from(view, pos)
    if partitions != 2 or not size:
        return None
    pos += 6
    if size > 127:
        size, pos = read_uvarint(view, pos - 1)
    end = pos + size - 1
    if view[end:] != _NO_TAGS:
        return None
    return ReceivedProduce(None, acks, timeout_ms, [(topic, [(index, view[pos:end])])])


def _decode_plain(view: memoryview) -> tuple[ReceivedProduce, int]:
    transactional_id, pos = read_nullable_string(view, 0, flexible=False)
    acks, timeout_ms = _SETTINGS.unpack_from(view, pos)
    count, pos = read_array(view, pos + 6, 6, flexible=False)
    topics: list[tuple[Topic, list[tuple[int, memoryview]]]] = []
    for _ in range(count):
        name, pos = read_string(view, pos, flexible=False)
        count, pos = read_array(view, pos, 8, flexible=False)
        partitions: list[tuple[int, memoryview]] = []
        for _ in range(count):
            index, size = _PARTITION.unpack_from(view, pos)
            pos += 8
            if size < 0:
                size = 0
            elif size > len(view) - pos:
                raise Nonsense(f"records of {size} bytes, {len(view) - pos} are left")
            partitions.append((index, view[pos : pos + size]))
            pos += size
        topics.append((name, partitions))
    return ReceivedProduce(transactional_id, acks, timeout_ms, topics), pos


def _decode_flexible(view: memoryview, version: int) -> tuple[ReceivedProduce, int]:
    transactional_id, pos = read_nullable_string(view, 0, flexible=True)
    acks, timeout_ms = _SETTINGS.unpack_from(view, pos)
    count, pos = read_array(view, pos + 6, 3, flexible=True)
    topics: list[tuple[Topic, list[tuple[int, memoryview]]]] = []
    for _ in range(count):
        topic: Topic
        if version >= TOPIC_IDS:
            topic, pos = read_uuid(view, pos)
        else:
            topic, pos = read_string(view, pos, flexible=True)
        count, pos = read_array(view, pos, 6, flexible=True)
        partitions: list[tuple[int, memoryview]] = []
        for _ in range(count):
            index = _INT32.unpack_from(view, pos)[0]
            records, pos = read_records(view, pos + 4, flexible=True)
            partitions.append((index, records))
            pos = skip_tags(view, pos)
        topics.append((topic, partitions))
        pos = skip_tags(view, pos)
    return ReceivedProduce(transactional_id, acks, timeout_ms, topics), skip_tags(view, pos)


def encode_produce_response(
    topics: Sequence[tuple[Topic, Sequence[PartitionProduced]]],
    version: int,
    correlation_id: int,
    throttle_time_ms: int = 0,
    nodes: Sequence[NodeEndpoint] = (),
) -> bytes:
    """The whole response frame, its length in front. ``nodes`` are where the leaders told are found."""
    if version >= FLEXIBLE and len(topics) == 1 and len(topics[0][1]) == 1 and not nodes:
        topic, (only,) = topics[0]
        if only.error_message is None and not only.record_errors and only.leader is None:
            return _encode_one(topic, only, correlation_id, throttle_time_ms)
    flexible = version >= FLEXIBLE
    parts = [b"\0" if flexible else b"", primitives.array_length(len(topics), flexible)]
    for topic, partitions in topics:
        parts += (_topic(topic, flexible), primitives.array_length(len(partitions), flexible))
        for produced in partitions:
            _encode_partition(parts, produced, version)
        if flexible:
            parts.append(b"\0")
    parts.append(_INT32.pack(throttle_time_ms))
    if flexible:
        parts.append(node_endpoints_tag(nodes if version >= LEADERS else ()))
    body = b"".join(parts)
    return _FRAME.pack(4 + len(body), correlation_id) + body


def _encode_one(
    topic: Topic, produced: PartitionProduced, correlation_id: int, throttle_time_ms: int
) -> bytes:
    """What nearly every request gets: one topic, one partition, nothing to say about records."""
    name = topic if isinstance(topic, bytes) else compact_string(topic)
    partition, error_code, base_offset, append_time, start_offset, _, _, _ = produced
    rest = _ONE_FLEXIBLE.pack(
        partition, error_code, base_offset, append_time, start_offset, 1, 0, 0, 0, throttle_time_ms, 0
    )
    # Header tags, one topic; one partition.
    size = 4 + 2 + len(name) + 1 + len(rest)
    return b"".join((_FRAME.pack(size, correlation_id), b"\0\2", name, b"\2", rest))


def _encode_partition(parts: list[bytes], produced: PartitionProduced, version: int) -> None:
    flexible = version >= FLEXIBLE
    with_start = version >= 5
    parts.append(_PRODUCED[with_start].pack(*produced[: 5 if with_start else 4]))
    if version < 8:
        return
    text = nullable_compact_string if flexible else nullable_string
    parts.append(primitives.array_length(len(produced.record_errors), flexible))
    for index, message in produced.record_errors:
        parts += (_INT32.pack(index), text(message), b"\0" if flexible else b"")
    parts.append(text(produced.error_message))
    if flexible:
        leader = produced.leader if version >= LEADERS else None
        parts.append(b"\0" if leader is None else _LEADER.pack(*_LEADER_TAG, *leader))


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
    """A request frame as chunks to be sent in order; batches are among them as they are, not copied.

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
