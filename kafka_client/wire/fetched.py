"""A fetch response for a client: its records are memoryviews of the received buffer.

It is the counterpart of `fetch`. The views keep the whole buffer in memory, so a caller copies records that
it keeps for long.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from kafka_client.errors import MalformedMessage
from kafka_client.wire.fetch import FLEXIBLE, REMOVAL_TAG, TOPIC_IDS, Buffer, Topic
from kafka_client.wire.primitives import (
    FAILURES,
    Nonsense,
    read_array,
    read_records,
    read_string,
    read_tag,
    read_tag_count,
    read_uuid,
    skip_tags,
)

_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
_SESSION = struct.Struct(">ihi")  # throttle time, error, session id
_FETCHED_4 = struct.Struct(">ihqq")  # partition, error, high watermark, last stable offset
_FETCHED_5 = struct.Struct(">ihqqq")  # and log start offset
_ABORTED = struct.Struct(">qq")
_LEADER = struct.Struct(">ii")
_EPOCH_END = struct.Struct(">iq")


class PartitionRecords(NamedTuple):
    """The response for one partition; -1 for values that the version or the broker does not send."""

    partition: int
    error_code: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: list[tuple[int, int]]
    """(producer id, first offset) of aborted transactions; empty for read uncommitted."""
    preferred_read_replica: int
    records: memoryview
    """Batches, the last one perhaps cut off."""
    leader_id: int
    """Who leads instead (KIP-951), else -1."""
    leader_epoch: int
    diverging_epoch: int
    """For a follower that has to truncate: the largest epoch both logs have, else -1."""
    diverging_end_offset: int
    removal_offset: int
    """The removal offset of the leader's log, for a follower before it, else -1."""


class FetchedResponse(NamedTuple):
    """A fetch response."""

    throttle_time_ms: int
    error_code: int
    session_id: int
    topics: list[tuple[Topic, list[PartitionRecords]]]


def decode_fetch_response(buffer: Buffer, version: int, pos: int = 0) -> FetchedResponse:
    """Read the body of a response, from `pos` to the end of `buffer`; MalformedMessage."""
    view = memoryview(buffer)
    try:
        return _decode(view, version, pos)
    except FAILURES as error:
        raise MalformedMessage(f"FetchResponse v{version}: {error}") from None


def _decode(view: memoryview, version: int, pos: int) -> FetchedResponse:
    flexible = version >= FLEXIBLE
    throttle_time_ms, error_code, session_id = 0, 0, 0
    if version >= 7:
        throttle_time_ms, error_code, session_id = _SESSION.unpack_from(view, pos)
        pos += _SESSION.size
    else:
        throttle_time_ms = _INT32.unpack_from(view, pos)[0]
        pos += 4
    count, pos = read_array(view, pos, 3 if flexible else 6, flexible=flexible)
    topics: list[tuple[Topic, list[PartitionRecords]]] = []
    for _ in range(count):
        topic: Topic
        if version >= TOPIC_IDS:
            topic, pos = read_uuid(view, pos)
        else:
            topic, pos = read_string(view, pos, flexible=flexible)
        count, pos = read_array(view, pos, _FETCHED_4.size + (2 if flexible else 8), flexible=flexible)
        partitions: list[PartitionRecords] = []
        for _ in range(count):
            partition, pos = _decode_partition(view, pos, version)
            partitions.append(partition)
        if flexible:
            pos = skip_tags(view, pos)
        topics.append((topic, partitions))
    if flexible:
        pos = skip_tags(view, pos)
    if pos != len(view):
        raise Nonsense(f"{len(view) - pos} bytes after its end")
    return FetchedResponse(throttle_time_ms, error_code, session_id, topics)


def _decode_partition(view: memoryview, pos: int, version: int) -> tuple[PartitionRecords, int]:
    flexible = version >= FLEXIBLE
    log_start_offset, preferred_read_replica = -1, -1
    if version == 4:
        partition, error_code, high_watermark, last_stable = _FETCHED_4.unpack_from(view, pos)
        pos += _FETCHED_4.size
    else:
        partition, error_code, high_watermark, last_stable, log_start_offset = _FETCHED_5.unpack_from(
            view, pos
        )
        pos += _FETCHED_5.size
    aborted, pos = _decode_aborted(view, pos, flexible)
    if version >= 11:
        preferred_read_replica = _INT32.unpack_from(view, pos)[0]
        pos += 4
    records, pos = read_records(view, pos, flexible=flexible)
    leader, diverging, removal_offset = (-1, -1), (-1, -1), -1
    if flexible and not view[pos]:
        pos += 1
    elif flexible:
        leader, diverging, removal_offset, pos = _decode_tags(view, pos)
    answer = PartitionRecords(
        partition,
        error_code,
        high_watermark,
        last_stable,
        log_start_offset,
        aborted,
        preferred_read_replica,
        records,
        *leader,
        *diverging,
        removal_offset,
    )
    return answer, pos


def _decode_aborted(view: memoryview, pos: int, flexible: bool) -> tuple[list[tuple[int, int]], int]:
    if flexible and not view[pos]:
        return [], pos + 1
    if not flexible and _INT32.unpack_from(view, pos)[0] == -1:
        return [], pos + 4
    count, pos = read_array(view, pos, _ABORTED.size + flexible, flexible=flexible)
    aborted: list[tuple[int, int]] = []
    for _ in range(count):
        producer_id, first_offset = _ABORTED.unpack_from(view, pos)
        aborted.append((producer_id, first_offset))
        pos += _ABORTED.size
        if flexible:
            pos = skip_tags(view, pos)
    return aborted, pos


def _decode_tags(view: memoryview, pos: int) -> tuple[tuple[int, int], tuple[int, int], int, int]:
    """Return (leader id, epoch), (diverging epoch, its end offset), removal offset, position after."""
    leader, diverging, removal_offset = (-1, -1), (-1, -1), -1
    count, pos = read_tag_count(view, pos)
    for _ in range(count):
        tag, size, pos = read_tag(view, pos)
        if tag == 0:
            diverging = _EPOCH_END.unpack_from(view[pos : pos + size])
        elif tag == 1:
            leader = _LEADER.unpack_from(view[pos : pos + size])
        elif tag == REMOVAL_TAG:
            (removal_offset,) = _INT64.unpack_from(view[pos : pos + size])
        pos += size
    return leader, diverging, removal_offset, pos
