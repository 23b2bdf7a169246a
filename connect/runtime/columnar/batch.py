"""A part of what was fetched, on its way to `put_columns`. The task's thread prepares it, once."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, cast

from connect.api.columnar_sink import ColumnBatch
from connect.runtime.columnar.from_records import column_batches, headers_column
from connect.runtime.columnar.parts import ColumnarPart
from connect.runtime.sink_rows import BatchFailed, SinkBatch, SinkRows
from kafka_client import TopicPartition

if TYPE_CHECKING:
    from kafka_client.fetcher.parts import Part


class ColumnarBatch(SinkBatch):
    """Columns by the converters where they have them, else by way of records."""

    def __init__(self, rows: SinkRows, tp: TopicPartition, part: ColumnarPart) -> None:
        super().__init__(rows, tp, cast("Part", part))
        self._columns: list[ColumnBatch] | None = None
        self._columnar_part = part

    @property
    def count(self) -> int:
        """The number of records for `put_columns`."""
        return sum(map(len, self._columns or ()))

    def prepared(self) -> list[ColumnBatch]:  # type: ignore[override]  # columns in place of records
        """Return the columns for `put_columns`.

        Raises BatchFailed if a record fails, DataError for records that do not fit a column together.
        """
        if self._columns is None:
            direct = self._direct() if self.records is None else None
            self._columns = column_batches(super().prepared()) if direct is None else direct
        self.prepared_at = time.monotonic()
        return self._columns

    def _direct(self) -> list[ColumnBatch] | None:
        """Return columns by the converters, or None if records have to be made."""
        part = self._columnar_part
        try:
            columns = self._rows.columns(self._tp.topic, part.keys, part.values, part.headers)
        except Exception as e:
            raise BatchFailed from e
        if columns is None:
            return None
        keys, values, headers = columns
        return [
            ColumnBatch(
                topic=self._tp.topic,
                source=self._tp,
                offsets=part.offsets,
                timestamps=part.timestamps,
                keys=keys,
                values=values,
                headers=headers_column(headers),
                raw_record=part.raw_record if self._rows.keeps_raw else None,
            )
        ]
