"""JSON lines of record batches: a value, or a whole record, per line."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from connect.api import DataError, Header, JsonBatch
from plugins.files.config import FilesSinkConfig

LineFormat = Callable[[JsonBatch], bytes]


def line_format(config: FilesSinkConfig) -> LineFormat:
    """Return the function from a batch to its lines, as `content` says."""
    return _values if config.content == "value" else _records


def _values(batch: JsonBatch) -> bytes:
    """Return a line for each value that is not null."""
    values = [value for value in batch.values if value is not None]
    values.append(b"")  # for the end of the last line
    return b"\n".join(values)


def _records(batch: JsonBatch) -> bytes:
    """Return a line for each record. Raises DataError for a header that JSON cannot hold."""
    headers: Sequence[Sequence[Header]] = batch.headers or [()] * len(batch)
    rows = [
        {
            "topic": batch.topic,
            "partition": batch.source.partition,
            "offset": offset,
            "timestamp": timestamp,
            "key": _raw(key),
            "value": _raw(value),
            "headers": [{"name": name, "value": value} for name, _, value in each],
        }
        for offset, timestamp, key, value, each in zip(
            batch.offsets, batch.timestamps, batch.keys, batch.values, headers, strict=True
        )
    ]
    try:
        return msgspec.json.Encoder(decimal_format="number").encode_lines(rows)
    except (TypeError, ValueError) as e:
        first, last = batch.offsets[0], batch.offsets[-1]
        raise DataError(
            f"{batch.source}, offsets {first} to {last}: a header cannot be written as JSON: {e}"
        ) from e


def _raw(text: bytes | None) -> msgspec.Raw | None:
    return None if text is None else msgspec.Raw(text)
