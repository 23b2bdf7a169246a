"""The source offsets of a poll batch, as `submitted` queues them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from connect.api.raw_batch import RawBatch
from connect.api.records import SourceBatch, SourceRecord
from connect.stores import ConnectorOffsets

_Document = Mapping[str, Any]


def last_offsets(
    records: Sequence[SourceRecord] | Sequence[RawBatch], offsets: ConnectorOffsets
) -> tuple[dict[bytes, bytes | None], bool]:
    """Return the last offset in the batch by the source partition's key, None for partitions without one.

    The second value is True if records without a source partition follow the last offset.
    """
    if isinstance(records, SourceBatch):
        partition, offset = records.source_partition, records.source_offset
        if partition is None:
            return {}, True
        return {offsets.key(partition): None if offset is None else offsets.encode(offset)}, False
    last: dict[int, tuple[_Document, _Document | None]] = {}
    uncovered = False
    for record in records:
        partition, offset = record.source_partition, record.source_offset
        if partition is None:
            uncovered = True
        elif offset is not None:
            last[id(partition)] = (partition, offset)
            uncovered = False
        else:
            last.setdefault(id(partition), (partition, None))
    by_key = _by_key(records, offsets) if len(last) > 1 else {offsets.key(p): o for p, o in last.values()}
    return {key: None if o is None else offsets.encode(o) for key, o in by_key.items()}, uncovered


def _by_key(
    records: Sequence[SourceRecord] | Sequence[RawBatch], offsets: ConnectorOffsets
) -> dict[bytes, _Document | None]:
    """Return the last offset by key for a batch in which equal source partitions may be different dicts."""
    keys: dict[int, bytes] = {}
    last: dict[bytes, _Document | None] = {}
    for record in records:
        partition = record.source_partition
        if partition is None:
            continue
        key = keys.get(id(partition))
        if key is None:
            key = keys[id(partition)] = offsets.key(partition)
        if record.source_offset is not None:
            last[key] = record.source_offset
        else:
            last.setdefault(key, None)
    return last
