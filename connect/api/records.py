"""The records that connectors produce and receive.

They are msgspec structs because a worker creates one per record, in about 0.3 µs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, overload

import msgspec

from connect.api.schema import Schema

Header = tuple[str, Schema | None, Any]
"""Name, schema if known, value."""
RawRecord: TypeAlias = tuple[int, int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]
"""Offset, timestamp in ms, key, value, headers, as they stand in the log."""


class SourceRecord(msgspec.Struct, gc=False):
    """A record to write to the log.

    topic, partition: where the record is written; None as partition lets the key decide (murmur2, sticky
    without key). timestamp: ms since the epoch; None is the time of sending.

    source_partition, source_offset: the record's place in the source, JSON-like dicts. After this record is
    acknowledged, the source restarts from `source_offset`. A record without an offset is covered by the next
    record with one of its source partition. A record without a source partition is covered by the next offset
    of any, so a batch may have a single offset, on its last record.
    """

    topic: str
    value: Any = None
    key: Any = None
    timestamp: int | None = None
    partition: int | None = None
    headers: Sequence[Header] = ()
    source_partition: Mapping[str, Any] | None = None
    source_offset: Mapping[str, Any] | None = None
    key_schema: Schema | None = None
    value_schema: Schema | None = None


class SourceBatch(Sequence[SourceRecord]):
    """Records of one topic and one source partition, as columns: cheaper than an object per record.

    A task's `poll` may return a batch in place of a list. `keys` and `timestamps` are as long as `values`, or
    None where no record has any. `source_offset` is the offset of the last record; the others have none.
    Records that need more, as headers or a partition, go into a list.

    As a sequence, a batch creates its records at each access, so changes to them are lost.
    """

    __slots__ = (
        "key_schema",
        "keys",
        "source_offset",
        "source_partition",
        "timestamps",
        "topic",
        "value_schema",
        "values",
    )

    def __init__(
        self,
        topic: str,
        values: Sequence[Any],
        *,
        keys: Sequence[Any] | None = None,
        timestamps: Sequence[int | None] | None = None,
        source_partition: Mapping[str, Any] | None = None,
        source_offset: Mapping[str, Any] | None = None,
        key_schema: Schema | None = None,
        value_schema: Schema | None = None,
    ) -> None:
        """Create a batch. Raises ValueError if the columns differ in length."""
        for name, column in (("keys", keys), ("timestamps", timestamps)):
            if column is not None and len(column) != len(values):
                raise ValueError(f"{len(column)} {name} for {len(values)} values")
        self.topic = topic
        self.values = values
        self.keys = keys
        self.timestamps = timestamps
        self.source_partition = source_partition
        self.source_offset = source_offset
        self.key_schema = key_schema
        self.value_schema = value_schema

    def __len__(self) -> int:
        return len(self.values)

    @overload
    def __getitem__(self, index: int) -> SourceRecord: ...

    @overload
    def __getitem__(self, index: slice) -> list[SourceRecord]: ...

    def __getitem__(self, index: int | slice) -> SourceRecord | list[SourceRecord]:
        if isinstance(index, slice):
            return [self._record(i) for i in range(len(self))[index]]
        return self._record(range(len(self))[index])

    def _record(self, index: int) -> SourceRecord:
        return SourceRecord(
            self.topic,
            self.values[index],
            None if self.keys is None else self.keys[index],
            None if self.timestamps is None else self.timestamps[index],
            source_partition=self.source_partition,
            source_offset=self.source_offset if index == len(self) - 1 else None,
            key_schema=self.key_schema,
            value_schema=self.value_schema,
        )


class Origin(NamedTuple):
    """The place in the log that a sink's record was read from, and the record's bytes."""

    topic: str
    partition: int
    offset: int
    raw: RawRecord | None = None
    """The record as read; None if no task needs it."""


class SinkRecord(msgspec.Struct, gc=False):
    """A record read from the log.

    timestamp: ms since the epoch. timestamp_type: 0 create time, 1 log append time.

    Transforms may change topic, partition and offset; `original_topic`, `original_partition` and
    `original_offset` stay (KIP-793). Offsets in `open`, `pre_commit` and `flush` go by the original ones. A
    transform makes a changed record by `msgspec.structs.replace`, which keeps `origin`.
    """

    topic: str
    partition: int
    offset: int
    value: Any = None
    key: Any = None
    timestamp: int = -1
    headers: Sequence[Header] = ()
    key_schema: Schema | None = None
    value_schema: Schema | None = None
    timestamp_type: int = 0
    origin: Origin | None = None
    """Set by the worker where the record needs it; None means topic, partition and offset as they are."""

    @property
    def original_topic(self) -> str:
        """The topic that the record was read from, whatever transforms made of it."""
        return self.topic if self.origin is None else self.origin.topic

    @property
    def original_partition(self) -> int:
        """The partition that the record was read from."""
        return self.partition if self.origin is None else self.origin.partition

    @property
    def original_offset(self) -> int:
        """The offset that the record was read at."""
        return self.offset if self.origin is None else self.origin.offset
