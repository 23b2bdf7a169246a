"""Control records: the markers that end a transaction (KIP-98).

    key:    version i16 = 0 │ type i16 (0 abort, 1 commit)
    value:  version i16 = 0 │ coordinator epoch i32

One batch holds one marker: control and transactional bits set, no compression, no sequence.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from kafka_client.errors import CorruptRecordBatch
from kafka_client.records.build import build_batch
from kafka_client.records.header import NO_LEADER_EPOCH, BatchHeader, Buffer, read_header
from kafka_client.records.reader import decode_records

ABORT: Final = 0
COMMIT: Final = 1

_KEY = struct.Struct(">hh")
_VALUE = struct.Struct(">hi")


def parse_control(key: bytes | None) -> tuple[int, int]:
    """Return version and type of a control record. Types above COMMIT are KRaft's: skip them."""
    if key is None or len(key) < _KEY.size:
        raise CorruptRecordBatch("a control record without version and type in its key")
    version, kind = _KEY.unpack_from(key)
    return version, kind


def parse_end_marker(value: bytes | None) -> int:
    """Return the coordinator epoch in the value of a COMMIT or ABORT record."""
    if value is None or len(value) < _VALUE.size:
        raise CorruptRecordBatch("a transaction marker without a coordinator epoch in its value")
    return int(_VALUE.unpack_from(value)[1])


class Marker(NamedTuple):
    """The marker that ends a transaction."""

    commit: bool
    coordinator_epoch: int


def parse_marker(batch: Buffer) -> Marker:
    """Return the marker in a control batch; raises CorruptRecordBatch if it has none."""
    records = decode_records(batch)
    if not records:
        raise CorruptRecordBatch("a control batch without a record")
    _, _, key, value, _ = records[0]
    version, kind = parse_control(key)
    if kind not in (ABORT, COMMIT):
        raise CorruptRecordBatch(f"a control record of type {kind}, version {version}")
    return Marker(kind == COMMIT, parse_end_marker(value))


def build_marker(
    commit: bool, *, producer_id: int, producer_epoch: int, coordinator_epoch: int, timestamp_ms: int
) -> bytes:
    """Return the control batch that ends a producer's transaction, before it has an offset; see
    `build_end_marker`.
    """
    return build_end_marker(
        COMMIT if commit else ABORT,
        timestamp_ms=timestamp_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        coordinator_epoch=coordinator_epoch,
    )


def build_end_marker(
    kind: int,
    *,
    timestamp_ms: int,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    base_offset: int = 0,
    leader_epoch: int = NO_LEADER_EPOCH,
) -> bytes:
    """Return the control batch that commits (`kind` COMMIT) or aborts a producer's transaction in a
    partition.
    """
    return build_batch(
        [(timestamp_ms, _KEY.pack(0, kind), _VALUE.pack(0, coordinator_epoch), ())],
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
        leader_epoch=leader_epoch,
    )


class SealedMarker(NamedTuple):
    """A marker as it is appended: the same for all partitions of a transaction, but for its place."""

    batch: bytes
    header: BatchHeader
    marker: Marker


def seal_marker(
    commit: bool, *, producer_id: int, producer_epoch: int, coordinator_epoch: int, timestamp_ms: int
) -> SealedMarker:
    """Build a marker as `build_marker` does, and read what a log needs to append it."""
    batch = build_marker(
        commit,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        coordinator_epoch=coordinator_epoch,
        timestamp_ms=timestamp_ms,
    )
    return SealedMarker(batch, read_header(batch), Marker(commit, coordinator_epoch))


MARKER_SIZE: Final = len(
    build_marker(True, producer_id=0, producer_epoch=0, coordinator_epoch=0, timestamp_ms=0)
)
"""Bytes of a control batch with one marker."""
