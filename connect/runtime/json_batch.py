"""A part of what was fetched, on its way to `put_json`. The task's thread prepares it, once."""

from __future__ import annotations

import time

from connect.api.json_sink import JsonBatch
from connect.api.records import SinkRecord
from connect.errors import DataError
from connect.runtime.errors.stages import Stage, StageError, class_name
from connect.runtime.json_records import json_batches
from connect.runtime.sink_rows import BatchFailed, SinkBatch
from kafka_client.records import Record


class JsonSinkBatch(SinkBatch):
    """JSON texts by the converters where no transform needs records, else by way of records."""

    _batches: list[JsonBatch] | None = None

    @property
    def count(self) -> int:
        """The number of records for `put_json`."""
        return sum(map(len, self._batches or ()))

    def prepared(self) -> list[JsonBatch]:  # type: ignore[override]  # texts in place of records
        """Return the texts for `put_json`. Raises BatchFailed if a record fails."""
        if self._batches is None:
            self._batches = self._first() if self.records is None else json_batches(self.records)
        self.prepared_at = time.monotonic()
        return self._batches

    def row(self, record: Record) -> list[SinkRecord]:
        """Return the records that one record becomes. Raises StageError, also if JSON cannot hold a value."""
        records = super().row(record)
        try:
            json_batches(records)
        except DataError as e:
            raise StageError(Stage.TASK_PUT, "put", class_name(self), e) from e
        return records

    def _first(self) -> list[JsonBatch]:
        """Return the texts of all records, before it is known that one fails."""
        try:
            direct = self._direct()
            return json_batches(super().prepared()) if direct is None else direct
        except Exception as e:
            raise BatchFailed from e

    def _direct(self) -> list[JsonBatch] | None:
        """Return texts by the converters, or None if records have to be made."""
        if not self._part.records:
            return []
        offsets, timestamps, keys, values, headers = zip(*self._part.records, strict=True)
        texts = self._rows.json(self._tp.topic, keys, values, headers)
        if texts is None:
            return None
        key_texts, value_texts, converted = texts
        return [
            JsonBatch(
                topic=self._tp.topic,
                source=self._tp,
                offsets=offsets,
                timestamps=timestamps,
                keys=key_texts,
                values=value_texts,
                headers=converted,
            )
        ]
