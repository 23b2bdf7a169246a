"""A task's converters, applied to whole batches, or to one row of a batch that failed."""

from __future__ import annotations

import itertools
import operator
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from connect.api.records import Header, Origin, SinkRecord, SourceBatch, SourceRecord
from connect.api.schema import Schema
from connect.converters import (
    Converter,
    HeaderConverter,
    SchemaAndValue,
    make_converter,
    make_header_converter,
)
from connect.errors import DataError
from connect.runtime.errors.stages import Stage, StageError, class_name
from connect.runtime.json_records import json_texts
from connect.runtime.worker_config import WorkerConfig
from kafka_client import TopicPartition
from kafka_client.records import Headers, NewRecord, Record

if TYPE_CHECKING:
    import pyarrow as pa

Origins = Literal["none", "place", "raw"]
"""The content of a sink record's `origin`: nothing, its place in the log, or its place and bytes."""
_Column = TypeVar("_Column", bound=Sequence[Any])
_BYTES: frozenset[type] = frozenset({bytes, type(None)})
_VALUES: frozenset[type] = frozenset({SchemaAndValue, tuple})


class Conversion:
    """The three converters of one task: for keys, for values and for headers."""

    def __init__(self, key: Converter, value: Converter, header: HeaderConverter) -> None:
        self._key = key
        self._value = value
        self._header = header

    @classmethod
    def configured(cls, worker: WorkerConfig, connector: Mapping[str, Any]) -> Conversion:
        """Create the connector's converters, or the worker's. Raises ConfigError for an invalid one."""
        own = dict(connector)
        key, value, header = (
            worker.converter_config(which, own)
            for which in ("key.converter", "value.converter", "header.converter")
        )
        return cls(
            make_converter("key.converter", *key),
            make_converter("value.converter", *value),
            make_header_converter(*header),
        )

    def to_log(self, topic: str, records: Sequence[SourceRecord]) -> list[NewRecord]:
        """Return records of one topic as the producer takes them, in the same order.

        A record without a timestamp gets the present time.
        """
        if isinstance(records, SourceBatch):
            return self._batch_to_log(topic, records)
        keys = _encode(
            self._key.from_connect_many, topic, [r.key_schema for r in records], [r.key for r in records]
        )
        values = _encode(
            self._value.from_connect_many,
            topic,
            [r.value_schema for r in records],
            [r.value for r in records],
        )
        times = _times(topic, [r.timestamp for r in records])
        headers = [self._headers(topic, r.headers) if r.headers else () for r in records]
        return list(zip(times, keys, values, headers, strict=True))

    def _batch_to_log(self, topic: str, batch: SourceBatch) -> list[NewRecord]:
        count = len(batch)
        times = [None] * count if batch.timestamps is None else batch.timestamps
        encode_keys = self._key.from_connect_many
        if batch.keys is None:
            keys = _encode_run(encode_keys, topic, batch.key_schema, [None]) * count
        else:
            keys = _encode_run(encode_keys, topic, batch.key_schema, batch.keys)
        values = _encode_run(self._value.from_connect_many, topic, batch.value_schema, batch.values)
        return list(zip(_times(topic, times), keys, values, itertools.repeat(())))

    def _headers(self, topic: str, headers: Sequence[Header]) -> Headers:
        convert = self._header.from_connect_header
        if any(len(header) != 3 for header in headers):
            raise DataError(f"headers for topic {topic}: each is (name, schema or None, value)")
        return tuple((name, convert(topic, name, schema, value)) for name, schema, value in headers)

    def one_to_log(self, record: SourceRecord) -> NewRecord:
        """Return one record as the producer takes it. Raises StageError with the stage that failed."""
        topic, key, value, header = record.topic, self._key, self._value, self._header
        with _stage(Stage.KEY_CONVERTER, "key", key):
            (key_data,) = _encode_run(key.from_connect_many, topic, record.key_schema, [record.key])
        with _stage(Stage.VALUE_CONVERTER, "value", value):
            (value_data,) = _encode_run(value.from_connect_many, topic, record.value_schema, [record.value])
        with _stage(Stage.HEADER_CONVERTER, "headers", header):
            headers = self._headers(topic, record.headers) if record.headers else ()
        with _stage(Stage.VALUE_CONVERTER, "timestamp", value):
            (timestamp,) = _times(topic, [record.timestamp])
        return timestamp, key_data, value_data, headers

    def from_log(
        self, tp: TopicPartition, records: Sequence[Record], timestamp_type: int, *, origins: Origins = "none"
    ) -> list[SinkRecord]:
        """Return records as a sink task takes them. Raises a converter's error for the whole batch.

        `timestamp_type`: 0 create time, 1 log append time. `origins`: whether the records keep their
        `origin`: "none", "place", or "raw" with their bytes.
        """
        if not records:
            return []
        topic, partition = tp
        keys = _decode(self._key.to_connect_many, topic, [r[2] for r in records])
        values = _decode(self._value.to_connect_many, topic, [r[3] for r in records])
        headers = [self._connect_headers(topic, r[4]) if r[4] else () for r in records]
        repeat = itertools.repeat
        key_schemas, keys = zip(*keys, strict=True)
        value_schemas, values = zip(*values, strict=True)
        return list(
            map(
                SinkRecord,
                repeat(topic),
                repeat(partition),
                [r[0] for r in records],
                values,
                keys,
                [r[1] for r in records],
                headers,
                key_schemas,
                value_schemas,
                repeat(timestamp_type),
                *(() if origins == "none" else (_origins(tp, records, with_raw=origins == "raw"),)),
            )
        )

    def columns_from_log(
        self, topic: str, keys: pa.Array, values: pa.Array
    ) -> tuple[pa.Array, pa.Array] | None:
        """Return binary keys and values as arrays of converted ones, or None if records have to be made."""
        columns = self._value.to_arrow(topic, values)
        if columns is None:
            return None
        converted = keys if keys.null_count == len(keys) else self._key.to_arrow(topic, keys)
        return None if converted is None else (converted, columns)

    def json_from_log(
        self, topic: str, keys: Sequence[bytes | None], values: Sequence[bytes | None]
    ) -> tuple[list[bytes | None], list[bytes | None]]:
        """Return keys and values as JSON texts without line ends, None for null.

        Raises a converter's error for the whole batch.
        """
        return _json(self._key, topic, keys), _json(self._value, topic, values)

    def headers_from_log(self, topic: str, headers: Sequence[Headers]) -> list[tuple[Header, ...]]:
        """Return the headers of records as a sink task takes them. Raises a converter's error."""
        return [self._connect_headers(topic, each) if each else () for each in headers]

    def one_from_log(
        self, tp: TopicPartition, record: Record, timestamp_type: int, *, origins: Origins = "none"
    ) -> SinkRecord:
        """Return one record as a sink task takes it. Raises StageError with the stage that failed."""
        topic = tp.topic
        with _stage(Stage.KEY_CONVERTER, "key", self._key):
            ((key_schema, key),) = _decode(self._key.to_connect_many, topic, [record[2]])
        with _stage(Stage.VALUE_CONVERTER, "value", self._value):
            ((value_schema, value),) = _decode(self._value.to_connect_many, topic, [record[3]])
        with _stage(Stage.HEADER_CONVERTER, "headers", self._header):
            headers = self._connect_headers(topic, record[4])
        return SinkRecord(
            topic,
            tp.partition,
            record[0],
            value,
            key,
            record[1],
            headers,
            key_schema,
            value_schema,
            timestamp_type,
            None if origins == "none" else _origins(tp, [record], with_raw=origins == "raw")[0],
        )

    def _connect_headers(self, topic: str, headers: Headers) -> tuple[Header, ...]:
        convert = self._header.to_connect_header
        return tuple((name, *convert(topic, name, data)) for name, data in headers)


def _json(converter: Converter, topic: str, datas: Sequence[bytes | None]) -> list[bytes | None]:
    texts = converter.to_json(topic, datas)
    if texts is not None:
        return texts
    return json_texts([value for _, value in _decode(converter.to_connect_many, topic, datas)])


@contextmanager
def _stage(stage: Stage, part: str, converter: object) -> Iterator[None]:
    """Turn an error in the body into a StageError."""
    try:
        yield
    except Exception as e:
        raise StageError(stage, part, class_name(converter), e) from e


def _origins(tp: TopicPartition, records: Sequence[Record], *, with_raw: bool) -> list[Origin]:
    raws = records if with_raw else itertools.repeat(None)
    return list(
        map(
            Origin,
            itertools.repeat(tp.topic),
            itertools.repeat(tp.partition),
            [r[0] for r in records],
            raws,
        )
    )


def _times(topic: str, times: Sequence[int | None]) -> list[int]:
    now = time.time_ns() // 1_000_000
    if times.count(None) == len(times):
        return [now] * len(times)
    try:
        return [now if timestamp is None else operator.index(timestamp) for timestamp in times]
    except TypeError as e:
        raise DataError(f"a timestamp for topic {topic} is no whole number of ms: {e}") from e


def _encode(
    convert: Callable[[str, Schema | None, Sequence[Any]], list[bytes | None]],
    topic: str,
    schemas: list[Schema | None],
    values: Sequence[Any],
) -> list[bytes | None]:
    """Convert values in one call if all have the same schema, else in one call per run of equal schemas."""
    first = schemas[0]
    if schemas.count(first) == len(schemas):
        return _encode_run(convert, topic, first, values)
    encoded: list[bytes | None] = []
    for _, run in itertools.groupby(zip(schemas, values, strict=True), key=lambda pair: id(pair[0])):
        pairs = list(run)
        encoded += convert(topic, pairs[0][0], [value for _, value in pairs])
    return _checked(convert, encoded, _BYTES, values)


def _encode_run(
    convert: Callable[[str, Schema | None, Sequence[Any]], list[bytes | None]],
    topic: str,
    schema: Schema | None,
    values: Sequence[Any],
) -> list[bytes | None]:
    return _checked(convert, convert(topic, schema, values), _BYTES, values)


def _decode(
    convert: Callable[[str, Sequence[bytes | None]], Sequence[tuple[Schema | None, Any]]],
    topic: str,
    datas: Sequence[bytes | None],
) -> Sequence[tuple[Schema | None, Any]]:
    return _checked(convert, convert(topic, datas), _VALUES, datas)


def _checked(
    convert: Callable[..., Sequence[Any]], converted: _Column, types: frozenset[type], inputs: Sequence[Any]
) -> _Column:
    """Return a converter's result. Raises DataError, with the converter's name, if it is invalid."""
    wrong = {*map(type, converted)} - types
    if wrong or len(converted) != len(inputs):
        name = type(getattr(convert, "__self__", None)).__name__
        method = convert.__name__.removesuffix("_many")
        expected = " or ".join(sorted(t.__name__ for t in types))
        made = wrong.pop().__name__ if wrong else f"{len(converted)} for {len(inputs)} records"
        raise DataError(f"{name}.{method} must give {expected} for each record, not {made}")
    return converted
