"""A record that a task leaves out, with its place, its bytes and its error."""

from __future__ import annotations

import base64
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from connect.api.records import RawRecord, SinkRecord, SourceRecord
from connect.errors import ConnectError
from connect.runtime.errors.stages import StageError
from kafka_client import TopicPartition
from kafka_client.records import Headers, NewRecord

ERROR_PREFIX = "__connect.errors."
"""The beginning of the names of a dead letter's context headers (KIP-298)."""
DESCRIBED = "described"
"""The value of the header `__connect.errors.format` of a source record that never had bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedRow:
    """A record that failed at one stage."""

    error: StageError
    place: str
    """The place, in words: topic, partition and offset, or those of the source."""
    timestamp: int
    """Ms since the epoch; -1 if the record has none."""
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    tp: TopicPartition | None = None
    """The partition that the record was read from; None for a source's record."""
    offset: int = -1
    context: tuple[tuple[str, bytes | None], ...] = ()
    """Further context headers, without their prefix."""

    def __str__(self) -> str:
        return f"{self.place}, {self.error}; stage {self.error.stage}"

    def failure(self) -> ConnectError:
        """Return the error that fails a task without tolerance; its cause is the stage's error."""
        failure = ConnectError(str(self))
        failure.__cause__ = self.error
        return failure

    def shown(self) -> str:
        """Return key, value and headers for the log."""
        return f"key {self.key!r}, value {self.value!r}, headers {self.headers!r}"

    def context_headers(self, connector: str, task_id: int) -> Headers:
        """Return the headers that Kafka's DeadLetterQueueReporter adds, in its order, as texts."""
        cause = self.error.cause
        place: list[tuple[str, object]] = []
        if self.tp is not None:
            place = [("topic", self.tp.topic), ("partition", self.tp.partition), ("offset", self.offset)]
        texts = [
            *place,
            ("connector.name", connector),
            ("task.id", task_id),
            ("stage", self.error.stage.value),
            ("class.name", self.error.executing_class),
            ("exception.class.name", f"{type(cause).__module__}.{type(cause).__qualname__}"),
            ("exception.message", str(cause)),
            ("exception.stacktrace", "".join(traceback.format_exception(cause))),
        ]
        named = tuple((ERROR_PREFIX + name, str(text).encode("utf-8", "replace")) for name, text in texts)
        return named + tuple((ERROR_PREFIX + name, value) for name, value in self.context)


def failed_sink_row(tp: TopicPartition, raw: RawRecord, error: StageError) -> FailedRow:
    """Return the failed row for a record as it was read from the log."""
    offset, timestamp, key, value, headers = raw
    return FailedRow(
        error=error,
        place=f"{tp}, offset {offset}",
        timestamp=timestamp,
        key=key,
        value=value,
        headers=headers,
        tp=tp,
        offset=offset,
    )


def failed_put_row(record: SinkRecord, error: StageError) -> FailedRow:
    """Return the failed row for a record that a sink's task reports; `record.origin` has its bytes."""
    tp = TopicPartition(record.original_topic, record.original_partition)
    raw = record.origin.raw if record.origin is not None else None
    if raw is None:
        raise ConnectError(
            f"{tp}, offset {record.original_offset}: the record reported is none that `put` got"
        )
    return failed_sink_row(tp, raw, error)


def failed_source_row(
    record: SourceRecord, error: StageError, converted: NewRecord | None = None
) -> FailedRow:
    """Return the failed row for a source's record; without `converted` it has a description as its value."""
    place = f"a record for topic {record.topic!r}"
    context = [("source.topic", record.topic.encode() if isinstance(record.topic, str) else None)]
    if record.source_partition is not None:
        context.append(("source.partition", _json(record.source_partition)))
        place += f", source partition {_json(record.source_partition).decode()}"
    if record.source_offset is not None:
        context.append(("source.offset", _json(record.source_offset)))
        place += f", source offset {_json(record.source_offset).decode()}"
    if converted is not None:
        timestamp, key, value, headers = converted
    else:
        timestamp, key, value, headers = -1, None, _json(_described(record)), ()
        context.append(("format", DESCRIBED.encode()))
    return FailedRow(
        error=error,
        place=place,
        timestamp=-1 if timestamp is None else timestamp,
        key=key,
        value=value,
        headers=headers,
        context=tuple(context),
    )


def _described(record: SourceRecord) -> Mapping[str, Any]:
    return {
        "topic": record.topic,
        "partition": record.partition,
        "timestamp": record.timestamp,
        "key": record.key,
        "value": record.value,
        "headers": [{"name": header[0], "value": header[-1]} for header in record.headers if header],
        "source_partition": record.source_partition,
        "source_offset": record.source_offset,
    }


def _json(value: object) -> bytes:
    """Return a value as JSON, with bytes in base64 and what JSON cannot hold by its `repr`."""
    try:
        return msgspec.json.encode(_plain(value))
    except Exception:  # keys that JSON cannot hold, values that contain themselves
        return msgspec.json.encode(repr(value))


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {key if isinstance(key, str) else repr(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode()
    return value if isinstance(value, (str, int, float, bool, type(None))) else repr(value)
