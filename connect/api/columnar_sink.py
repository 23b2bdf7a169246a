"""Sinks that take records as Apache Arrow columns, without an object per record. Needs the extra `arrow`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from connect.api.calls import MaybeAwaitable
from connect.api.records import Origin, RawRecord, SinkRecord
from connect.api.sink import SinkTask
from kafka_client import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnBatch:
    """Consecutive records of one partition as Arrow arrays of equal length.

    `topic` is that of the records, which a transform may have changed; `source` is where they were read.
    `offsets`: int64. `timestamps`: timestamp[ms, UTC]. `keys` and `values`: a struct array for objects, else
    an array of the converter's type; null where the record has a null. `headers`: a list of structs of `name`
    and `value` per record; None if no record has any.
    """

    topic: str
    source: TopicPartition
    offsets: pa.Array
    timestamps: pa.Array
    keys: pa.Array
    values: pa.Array
    headers: pa.Array | None = None
    raw_record: Callable[[int], RawRecord | None] | None = None
    """The function from an offset to the record in the log; None if the task has no reporter."""

    def __len__(self) -> int:
        return len(self.offsets)

    def slice(self, start: int, stop: int) -> ColumnBatch:
        """Return the records from index `start` up to, but not including, `stop`. Nothing is copied."""
        count = stop - start
        return ColumnBatch(
            topic=self.topic,
            source=self.source,
            offsets=self.offsets.slice(start, count),
            timestamps=self.timestamps.slice(start, count),
            keys=self.keys.slice(start, count),
            values=self.values.slice(start, count),
            headers=None if self.headers is None else self.headers.slice(start, count),
            raw_record=self.raw_record,
        )

    def record(self, index: int) -> SinkRecord:
        """Return the record at an index, for `ErrantRecordReporter.report`; it has no headers.

        Raises IndexError beyond the batch.
        """
        offset = self.offsets[index].as_py()
        raw = None if self.raw_record is None else self.raw_record(offset)
        return SinkRecord(
            self.topic,
            self.source.partition,
            offset,
            self.values[index].as_py(),
            self.keys[index].as_py(),
            self.timestamps[index].value,
            origin=Origin(*self.source, offset if raw is None else raw[0], raw),
        )

    def record_batch(self) -> pa.RecordBatch:
        """Return one Arrow batch: a column per field of the values, or one column `value`, and the records'
        own.

        These are `__topic`, `__partition`, `__offset`, `__timestamp`, `__key` and `__headers`.
        """
        import pyarrow as pa

        is_struct = pa.types.is_struct(self.values.type)
        columns: dict[str, pa.Array] = {} if is_struct else {"value": self.values}
        if is_struct:
            fields = self.values.type
            columns = {fields[i].name: column for i, column in enumerate(self.values.flatten())}
        count = len(self)
        columns |= {
            "__topic": pa.repeat(self.topic, count),
            "__partition": pa.repeat(pa.scalar(self.source.partition, pa.int32()), count),
            "__offset": self.offsets,
            "__timestamp": self.timestamps,
            "__key": self.keys,
            "__headers": pa.nulls(count) if self.headers is None else self.headers,
        }
        return pa.RecordBatch.from_pydict(columns)


class ColumnarSinkTask(SinkTask):
    """Writes Arrow columns to the target: subclass it and override `put_columns` in place of `put`.

    All else is as in a `SinkTask`. The worker makes columns straight from record batches for the byte array
    and the string converter and for bare JSON, and from converted records otherwise. A record that cannot be
    converted is left out alone, as `errors.tolerance` says.
    """

    @property
    def takes_columns(self) -> bool:
        """True if the worker is to call `put_columns` rather than `put`; asked after `start`."""
        return True

    def put_columns(self, batches: Sequence[ColumnBatch]) -> MaybeAwaitable[None]:
        """Take records, in offset order per partition; see `SinkTask.put`.

        One batch, unless transforms have sent the records to several topics. Bounds are `max.poll.records`
        and `put.max.bytes` of keys and values.
        """
        raise NotImplementedError
