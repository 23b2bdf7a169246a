"""The records of a batch by column: as lists of Python objects, or as buffers in Apache Arrow's layout."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from kafka_client.records.record import Headers, Record


@dataclass(slots=True)
class Columns:
    """A batch's records by column. All five lists have one entry per record."""

    offsets: list[int] = field(default_factory=list)
    timestamps: list[int] = field(default_factory=list)
    keys: list[bytes | None] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)
    headers: list[Headers] = field(default_factory=list)

    @classmethod
    def of(cls, records: Iterable[Record]) -> Self:
        """Return the columns of decoded records."""
        columns: Any = map(list, zip(*records, strict=True))
        return cls(*columns)

    def records(self) -> Iterator[Record]:
        """Return the records one by one."""
        return zip(self.offsets, self.timestamps, self.keys, self.values, self.headers, strict=True)

    def from_offset(self, offset: int) -> Columns:
        """Return the columns of the records at `offset` and after it."""
        first = bisect_left(self.offsets, offset)
        return Columns(
            self.offsets[first:],
            self.timestamps[first:],
            self.keys[first:],
            self.values[first:],
            self.headers[first:],
        )


class BinaryColumn(NamedTuple):
    """Keys or values as Arrow's variable-size binary layout has them.

    `ends`: int32, one more than there are records: entry n is `data[ends[n]:ends[n + 1]]`.
    `valid`: one bit per record, least significant first, 0 where the entry is null; None if none is null.
    `nulls`: how many entries are null.
    """

    ends: array[int]
    data: bytearray
    valid: bytearray | None
    nulls: int


@dataclass(frozen=True, slots=True)
class ArrowColumns:
    """Records as buffers that Arrow arrays can be made of without a copy.

    `offsets` and `timestamps` (ms): int64, one per record. `headers`: one per record, or None if no record
    has any.
    """

    count: int
    offsets: array[int]
    timestamps: array[int]
    keys: BinaryColumn
    values: BinaryColumn
    headers: list[Headers] | None
