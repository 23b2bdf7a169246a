"""The way of fetched records to a sink's `put`: through the converters, then through the transforms."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from connect.api.records import Header, Origin, SinkRecord
from connect.runtime.conversion import Conversion, Origins
from connect.runtime.errors.stages import Stage, StageError
from connect.transforms.chain import TransformChain, TransformError
from kafka_client import TopicPartition
from kafka_client.fetcher.parts import Part
from kafka_client.records import Headers, Record

if TYPE_CHECKING:
    import pyarrow as pa

_MEASURED_RECORDS = 1000
_SAMPLE = 16


class BatchFailed(Exception):
    """A signal that a batch has to be looked at row by row."""


class SinkRows:
    """The converters and transforms of one sink task; `keeps_raw` if its records may be reported."""

    def __init__(self, conversion: Conversion, transforms: TransformChain, *, keeps_raw: bool) -> None:
        self._conversion = conversion
        self._transforms = transforms
        self._origins: Origins = "raw" if keeps_raw else "none" if transforms.is_empty else "place"
        self._transforms_singly = False
        """True once a transform has made a record of its own instead of a changed one."""

    @property
    def keeps_raw(self) -> bool:
        """True if the records may be reported, with their bytes."""
        return self._origins == "raw"

    def batch(self, tp: TopicPartition, part: Part) -> list[SinkRecord]:
        """Return the records for `put`. Raises the first error of a converter or transform."""
        records = self._conversion.from_log(tp, part.records, part.timestamp_type, origins=self._origins)
        if self._transforms.is_empty:
            return records
        if not self._transforms_singly:
            transformed = self._transforms.apply(records)
            if all(record.origin is not None for record in transformed):
                return transformed
            self._transforms_singly = True
        return [each for record in records for each in self._transformed(record)]

    def columns(
        self, topic: str, keys: pa.Array, values: pa.Array, headers: Sequence[Headers] | None
    ) -> tuple[pa.Array, pa.Array, list[tuple[Header, ...]]] | None:
        """Return binary keys and values as converted arrays, and the headers, if any record has one.

        None if records have to be made: for transforms, and for converters without columns.
        """
        columns = (
            self._conversion.columns_from_log(topic, keys, values) if self._transforms.is_empty else None
        )
        if columns is None:
            return None
        return (*columns, self._conversion.headers_from_log(topic, headers or ()))

    def json(
        self,
        topic: str,
        keys: Sequence[bytes | None],
        values: Sequence[bytes | None],
        headers: Sequence[Headers],
    ) -> tuple[list[bytes | None], list[bytes | None], list[tuple[Header, ...]] | None] | None:
        """Return keys and values as JSON texts, and the headers, if any record has one.

        None if records have to be made, for transforms.
        """
        if not self._transforms.is_empty:
            return None
        texts = self._conversion.json_from_log(topic, keys, values)
        return (*texts, self._conversion.headers_from_log(topic, headers) if any(headers) else None)

    def row(self, tp: TopicPartition, record: Record, timestamp_type: int) -> list[SinkRecord]:
        """Return the records for `put` that one record becomes. Raises StageError."""
        converted = self._conversion.one_from_log(tp, record, timestamp_type, origins=self._origins)
        if self._transforms.is_empty:
            return [converted]
        try:
            return self._transformed(converted)
        except TransformError as e:
            raise transform_error(e) from e

    def _transformed(self, record: SinkRecord) -> list[SinkRecord]:
        origin = record.origin or Origin(record.topic, record.partition, record.offset)
        transformed = self._transforms.apply([record])
        for each in transformed:
            if each.origin is None:
                each.origin = origin
        return transformed


class SinkBatch:
    """A part of what was fetched, on its way to `put`. The task's thread prepares it, once."""

    def __init__(self, rows: SinkRows, tp: TopicPartition, part: Part) -> None:
        self._rows = rows
        self._tp = tp
        self._part = part
        self.records: list[SinkRecord] | None = None
        """The records for `put`; None before they are prepared."""
        self.prepared_at = 0.0
        """Monotonic seconds at which `put` could begin last."""

    @property
    def count(self) -> int:
        """The number of records for `put`."""
        return len(self.records or ())

    def prepared(self) -> list[SinkRecord]:
        """Return the records for `put`. Raises BatchFailed if a record fails."""
        if self.records is None:
            try:
                self.records = self._rows.batch(self._tp, self._part)
            except Exception as e:
                raise BatchFailed from e
        self.prepared_at = time.monotonic()
        return self.records

    def row(self, record: Record) -> list[SinkRecord]:
        """Return the records that one record becomes. Raises StageError."""
        return self._rows.row(self._tp, record, self._part.timestamp_type)


def transform_error(error: TransformError) -> StageError:
    """Return the StageError for an error of a transform."""
    cause = error.__cause__ or error
    name = f"{error.transform.__module__}.{error.transform.__qualname__}"
    return StageError(Stage.TRANSFORMATION, f"transform {error.alias}", name, cause)


def bounded(part: Part, max_bytes: int) -> Iterator[Part]:
    """Yield the part in pieces of at most `max_bytes` of keys and values, and at least one record.

    Many records, of which a sample is far from the bound, are not measured one by one.
    """
    records = part.records
    if len(records) > _MEASURED_RECORDS and sum(map(_size, records[::_SAMPLE])) * _SAMPLE < max_bytes / 4:
        yield part
        return
    sizes = [*map(_size, records)]
    if sum(sizes) <= max_bytes:
        yield part
        return
    start = total = 0
    for index, size in enumerate(sizes):
        if index > start and total + size > max_bytes:
            yield _piece(records[start:index], part)
            start, total = index, 0
        total += size
    yield part._replace(records=records[start:])


def _size(record: Record) -> int:
    return len(record[2] or b"") + len(record[3] or b"")


def _piece(records: Sequence[Record], part: Part) -> Part:
    return Part(list(records), records[-1][0] + 1, part.timestamp_type)
