"""The broker's codec of Fetch, written by hand: requests to light tuples, responses to chunks.

A response is a list of bytes and file slices; record bytes stay in files, and only their lengths are needed
here. Versions 4 to 18 are supported. Version 5 adds log start offsets, 7 sessions, 9 leader epochs, 11 rack
and preferred replica. Version 12 is flexible, 13 has topic ids instead of names, 15 moves the replica's id to
a tagged field. A client sends the compiled `kafka_client.wire.messages.fetch.FetchRequest` and reads the
response with `kafka_client.wire.fetched`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from kafka_client.errors import MalformedMessage
from kafka_client.wire import primitives
from kafka_client.wire.node_endpoints import NodeEndpoint, node_endpoints_tag
from kafka_client.wire.primitives import (
    FAILURES,
    Nonsense,
    array_length,
    compact_string,
    read_array,
    read_nullable_string,
    read_string,
    read_tag,
    read_tag_count,
    read_uuid,
    skip_tags,
    string,
)

Buffer: TypeAlias = bytes | bytearray | memoryview
Topic: TypeAlias = str | bytes
"""A topic's name; its id from the first version with ids on."""


class Slice(Protocol):
    """Records that are somewhere else (`kafka_client.records.FileSlice`): only their length matters here."""

    @property
    def length(self) -> int: ...


S = TypeVar("S", bound=Slice)

VERSIONS: Final = (4, 18)
FLEXIBLE: Final = 12
RACKS: Final = 11
"""First version whose consumers read from any replica, and say their rack (KIP-392)."""
TOPIC_IDS: Final = 13
"""First version that names topics by their ids."""
NODES: Final = 16
"""The first version with the leaders' addresses (KIP-951)."""
READ_COMMITTED: Final = 1
"""The isolation level of read_committed."""
NO_REPLICA: Final = -1
"""The replica id of a consumer's request."""

_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
_REPLICA = struct.Struct(">iq")
_FRAME = struct.Struct(">ii")


class FetchPartition(NamedTuple):
    """The request for one partition; -1 for values that the version does not have."""

    partition: int
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int
    max_bytes: int


class ReceivedFetch(NamedTuple):
    """A fetch request of a consumer or a follower."""

    replica_id: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    """0 read uncommitted, 1 read committed."""
    session_id: int
    session_epoch: int
    topics: list[tuple[Topic, list[FetchPartition]]]
    forgotten: list[tuple[Topic, list[int]]]
    """Partitions to drop from the session, by topic."""
    rack_id: str
    replica_epoch: int
    cluster_id: str | None

    @property
    def is_committed(self) -> bool:
        """True if only records of committed transactions are wanted; a follower takes all there is."""
        return self.isolation_level == READ_COMMITTED and self.replica_id < 0


class PartitionFetched(NamedTuple, Generic[S]):
    """The answer for one partition. No records are zero bytes of them, never null (KAFKA-18646)."""

    partition: int
    error_code: int = 0
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    records: S | bytes = b""
    aborted: Sequence[tuple[int, int]] | None = None
    """(producer id, first offset) of aborted transactions, for read committed."""
    preferred_read_replica: int = -1
    diverging: tuple[int, int] | None = None
    """(leader epoch, its end offset): a reader (from version 12 on) has read what is not here (KIP-320)."""
    leader: tuple[int, int] | None = None
    """(leader, leader epoch) beside an error that another broker would not give, from version 12 on; such an
    answer has no `diverging`.
    """
    removal_offset: int = -1
    """The removal offset of the leader's log, for a follower before it: a tagged field of ours."""


def decode_fetch_request(buffer: Buffer, version: int, pos: int = 0, end: int | None = None) -> ReceivedFetch:
    """Read the body of a request, which is `buffer[pos:end]`; MalformedMessage if it is not exactly one."""
    view = memoryview(buffer)[pos:end]
    try:
        request, pos = _decode(view, version)
        if pos != len(view):
            raise Nonsense(f"{len(view) - pos} bytes after its end")
    except FAILURES as error:
        raise MalformedMessage(f"FetchRequest v{version}: {error}") from None
    return request


def _decode(view: memoryview, version: int) -> tuple[ReceivedFetch, int]:
    flexible = version >= FLEXIBLE
    replica_id, session_id, session_epoch = NO_REPLICA, 0, -1
    if version >= 15:
        max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch = _HEAD_15.unpack_from(
            view
        )
        pos = _HEAD_15.size
    elif version >= 7:
        replica_id, max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch = (
            _HEAD_7.unpack_from(view)
        )
        pos = _HEAD_7.size
    else:
        replica_id, max_wait_ms, min_bytes, max_bytes, isolation_level = _HEAD_4.unpack_from(view)
        pos = _HEAD_4.size
    topics, pos = _decode_topics(view, pos, version)
    forgotten: list[tuple[Topic, list[int]]] = []
    if version >= 7:
        forgotten, pos = _decode_forgotten(view, pos, version)
    rack_id = ""
    if version >= 11:
        rack_id, pos = read_string(view, pos, flexible=flexible)
    replica_epoch, cluster_id = -1, None
    if flexible and not view[pos]:
        pos += 1
    elif flexible:
        replica, replica_epoch, cluster_id, pos = _decode_tags(view, pos)
        replica_id = replica if version >= 15 else replica_id
    request = ReceivedFetch(
        replica_id,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        topics,
        forgotten,
        rack_id,
        replica_epoch,
        cluster_id,
    )
    return request, pos


_HEAD_4 = struct.Struct(">iiiib")  # Replica id, max wait, min bytes, max bytes, isolation level.
_HEAD_7 = struct.Struct(">iiiibii")  # _HEAD_4, session id, session epoch.
_HEAD_15 = struct.Struct(">iiibii")  # _HEAD_7 without the replica id.
_WANTED_4 = struct.Struct(">iqi")  # Partition, offset, max bytes.
_WANTED_5 = struct.Struct(">iqqi")  # Partition, offset, log start offset, max bytes.
_WANTED_9 = struct.Struct(">iiqqi")  # Partition, leader epoch, offset, log start offset, max bytes.
_WANTED_12 = struct.Struct(">iiqiqi")  # the fields of FetchPartition


def _decode_topics(
    view: memoryview, pos: int, version: int
) -> tuple[list[tuple[Topic, list[FetchPartition]]], int]:
    flexible = version >= FLEXIBLE
    count, pos = read_array(view, pos, 3 if flexible else 6, flexible=flexible)
    topics: list[tuple[Topic, list[FetchPartition]]] = []
    for _ in range(count):
        topic, pos = _decode_topic(view, pos, version)
        partitions: list[FetchPartition] = []
        if flexible:
            count, pos = read_array(view, pos, _WANTED_12.size + 1, flexible=True)
            for _ in range(count):
                partitions.append(FetchPartition._make(_WANTED_12.unpack_from(view, pos)))
                # The tags here are of KRaft's own fetching: directory id, the follower's high watermark.
                pos += _WANTED_12.size
                pos = skip_tags(view, pos) if view[pos] else pos + 1
            pos = skip_tags(view, pos) if view[pos] else pos + 1
        else:
            layout = _WANTED_4 if version == 4 else _WANTED_5 if version < 9 else _WANTED_9
            count, pos = read_array(view, pos, layout.size, flexible=False)
            for _ in range(count):
                partitions.append(_old_partition(layout.unpack_from(view, pos)))
                pos += layout.size
        topics.append((topic, partitions))
    return topics, pos


def _old_partition(fields: tuple[int, ...]) -> FetchPartition:
    match fields:
        case (partition, epoch, offset, start, max_bytes):
            return FetchPartition(partition, epoch, offset, -1, start, max_bytes)
        case (partition, offset, start, max_bytes):
            return FetchPartition(partition, -1, offset, -1, start, max_bytes)
        case _:
            partition, offset, max_bytes = fields
            return FetchPartition(partition, -1, offset, -1, -1, max_bytes)


def _decode_forgotten(view: memoryview, pos: int, version: int) -> tuple[list[tuple[Topic, list[int]]], int]:
    flexible = version >= FLEXIBLE
    count, pos = read_array(view, pos, 3 if flexible else 6, flexible=flexible)
    forgotten: list[tuple[Topic, list[int]]] = []
    for _ in range(count):
        topic, pos = _decode_topic(view, pos, version)
        count, pos = read_array(view, pos, 4, flexible=flexible)
        forgotten.append((topic, list(struct.unpack_from(f">{count}i", view, pos))))
        pos += 4 * count
        if flexible:
            pos = skip_tags(view, pos)
    return forgotten, pos


def _decode_topic(view: memoryview, pos: int, version: int) -> tuple[Topic, int]:
    if version >= TOPIC_IDS:
        return read_uuid(view, pos)
    return read_string(view, pos, flexible=version >= FLEXIBLE)


def _decode_tags(view: memoryview, pos: int) -> tuple[int, int, str | None, int]:
    """Return replica id, replica epoch, cluster id and the position after the request's tagged fields."""
    replica_id, replica_epoch, cluster_id = NO_REPLICA, -1, None
    count, pos = read_tag_count(view, pos)
    for _ in range(count):
        tag, size, pos = read_tag(view, pos)
        if tag == 0:
            cluster_id, _ = read_nullable_string(view[: pos + size], pos, flexible=True)
        elif tag == 1:
            replica_id, replica_epoch = _REPLICA.unpack_from(view[pos : pos + size])
        pos += size
    return replica_id, replica_epoch, cluster_id, pos


_FETCHED_4 = struct.Struct(">ihqq")  # partition, error, high watermark, last stable offset
_FETCHED_5 = struct.Struct(">ihqqq")  # and log start offset
_FETCHED_12 = struct.Struct(">ihqqqBi")  # and the number of aborted transactions, preferred read replica
_ABORTED = struct.Struct(">qq")
_SESSION = struct.Struct(">ihi")  # throttle time, error, session id
_DIVERGING = struct.Struct(">BBBiqx")  # one tagged field, number 0, of so many bytes: epoch, end offset
_DIVERGING_TAG = (1, 0, 13)
_LEADER = struct.Struct(">BBBiix")  # the same, number 1: leader, leader epoch
_LEADER_TAG = (1, 1, 9)

REMOVAL_TAG: Final = 10_000
_REMOVAL = struct.Struct(">BBBq")  # tagged field 10000, its number in two bytes, of so many bytes: an offset
_REMOVAL_TAG = (REMOVAL_TAG & 0x7F | 0x80, REMOVAL_TAG >> 7, 8)


def encode_fetch_response(
    topics: Sequence[tuple[Topic, Sequence[PartitionFetched[S]]]],
    version: int,
    correlation_id: int,
    *,
    throttle_time_ms: int = 0,
    error_code: int = 0,
    session_id: int = 0,
    nodes: Sequence[NodeEndpoint] = (),
) -> list[bytes | S]:
    """Return the whole response frame as chunks to be sent in order, starting with its length.

    ``nodes`` are the addresses of the leaders in the response, from version 16 on.
    """
    flexible = version >= FLEXIBLE
    if version >= 7:
        head = _SESSION.pack(throttle_time_ms, error_code, session_id)
    else:
        head = _INT32.pack(throttle_time_ms)
    pending = [b"\0" + head if flexible else head, array_length(len(topics), flexible)]
    chunks: list[bytes | S] = []
    size = 4
    for topic, partitions in topics:
        pending += (_encode_topic(topic, flexible), array_length(len(partitions), flexible))
        for fetched in partitions:
            records = fetched.records
            _encode_partition(pending, fetched, version)
            if isinstance(records, bytes):
                pending += (array_length(len(records), flexible), records)
            else:
                pending.append(array_length(records.length, flexible))
                chunk = b"".join(pending)
                chunks += (chunk, records)
                size += len(chunk) + records.length
                pending = []
            if flexible:
                if fetched.removal_offset >= 0:
                    pending.append(_removal_tags(fetched))
                elif fetched.leader is not None:
                    pending.append(_LEADER.pack(*_LEADER_TAG, *fetched.leader))
                elif fetched.diverging is not None:
                    pending.append(_DIVERGING.pack(*_DIVERGING_TAG, *fetched.diverging))
                else:
                    pending.append(b"\0")
        if flexible:
            pending.append(b"\0")
    if flexible:
        pending.append(node_endpoints_tag(nodes if version >= NODES else ()))
    last = b"".join(pending)
    frame = _FRAME.pack(size + len(last), correlation_id)
    if not chunks:
        return [frame + last]
    first = chunks[0]
    assert isinstance(first, bytes)
    chunks[0] = frame + first
    if last:
        chunks.append(last)
    return chunks


def _encode_partition(pending: list[bytes], fetched: PartitionFetched[S], version: int) -> None:
    """Add the part of a partition's response before its records."""
    flexible = version >= FLEXIBLE
    if flexible and not fetched.aborted:
        aborted = 0 if fetched.aborted is None else 1  # null, or none
        pending.append(_FETCHED_12.pack(*fetched[:5], aborted, fetched.preferred_read_replica))
        return
    pending.append(_FETCHED_4.pack(*fetched[:4]) if version == 4 else _FETCHED_5.pack(*fetched[:5]))
    if fetched.aborted is None:
        pending.append(b"\0" if flexible else b"\xff\xff\xff\xff")
    else:
        pending.append(array_length(len(fetched.aborted), flexible))
        for producer_id, first_offset in fetched.aborted:
            pending += (_ABORTED.pack(producer_id, first_offset), b"\0" if flexible else b"")
    if version >= 11:
        pending.append(_INT32.pack(fetched.preferred_read_replica))


def _removal_tags(fetched: PartitionFetched[S]) -> bytes:
    """Return the tags of a response with a removal offset, and perhaps a divergence."""
    tail = _REMOVAL.pack(*_REMOVAL_TAG, fetched.removal_offset)
    if fetched.diverging is None:
        return b"\1" + tail
    _, *tag = _DIVERGING_TAG
    return _DIVERGING.pack(2, *tag, *fetched.diverging) + tail


def _encode_topic(topic: Topic, flexible: bool) -> bytes:
    if isinstance(topic, bytes):
        return primitives.uuid(topic)
    return compact_string(topic) if flexible else string(topic)
