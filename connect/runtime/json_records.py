"""JSON texts of converted records, for converters without JSON of their own, and after transforms."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import msgspec

from connect.api.json_sink import JsonBatch
from connect.api.records import SinkRecord
from connect.errors import DataError
from kafka_client import TopicPartition

_encode_lines = msgspec.json.Encoder(decimal_format="number").encode_lines


def json_texts(values: Sequence[Any]) -> list[bytes | None]:
    """Return values as JSON texts without line ends, None for None.

    Raises TypeError or ValueError for a value that JSON cannot hold.
    """
    if values.count(None) == len(values):
        return [None] * len(values)
    texts: list[bytes | None] = [*_encode_lines(values).split(b"\n")[:-1]]
    if any(value is None for value in values):
        return [None if value is None else text for value, text in zip(values, texts, strict=True)]
    return texts


def json_batches(records: Sequence[SinkRecord]) -> list[JsonBatch]:
    """Return records as JSON texts, in order: a batch for each run of one topic and source partition.

    Raises DataError for values that JSON cannot hold.
    """
    runs = itertools.groupby(records, lambda r: (r.topic, r.original_topic, r.original_partition))
    return [_batch(topic, TopicPartition(*source), list(run)) for (topic, *source), run in runs]


def _batch(topic: str, source: TopicPartition, records: list[SinkRecord]) -> JsonBatch:
    headers = [record.headers for record in records]
    try:
        return JsonBatch(
            topic=topic,
            source=source,
            offsets=[record.offset for record in records],
            timestamps=[record.timestamp for record in records],
            keys=json_texts([record.key for record in records]),
            values=json_texts([record.value for record in records]),
            headers=headers if any(headers) else None,
        )
    except (TypeError, ValueError, RecursionError) as e:
        first, last = records[0].offset, records[-1].offset
        raise DataError(f"{source}, offsets {first} to {last}: a value cannot be written as JSON: {e}") from e
