"""The source offsets of a poll batch, as `submitted` queues them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from connect.api.records import SourceBatch, SourceRecord
from connect.stores import ConnectorOffsets

_Document = Mapping[str, Any]


def last_offsets(
    records: Sequence[SourceRecord], offsets: ConnectorOffsets
) -> tuple[dict[bytes, bytes | None], bool]:
    """For each source partition's key the last offset in the batch, None where it has none; and whether
    records without a source partition stand behind the last offset.
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
    found = _by_key(records, offsets) if len(last) > 1 else {offsets.key(p): o for p, o in last.values()}
    return {key: None if o is None else offsets.encode(o) for key, o in found.items()}, uncovered


def _by_key(records: Sequence[SourceRecord], offsets: ConnectorOffsets) -> dict[bytes, _Document | None]:
    """Several dicts may be one source partition: then the order of records decides."""
    keys: dict[int, bytes] = {}
    found: dict[bytes, _Document | None] = {}
    for record in records:
        partition = record.source_partition
        if partition is None:
            continue
        key = keys.get(id(partition))
        if key is None:
            key = keys[id(partition)] = offsets.key(partition)
        if record.source_offset is not None:
            found[key] = record.source_offset
        else:
            found.setdefault(key, None)
    return found
