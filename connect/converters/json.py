"""JsonConverter: JSON, bare or in the envelope `{"schema": ..., "payload": ...}`.

Bare JSON without a schema goes through one msgspec encoder, a batch at a time. With a schema, msgspec checks
structs by a type made from the schema (`json_typed`). The functions that turn other values into JSON and back
are composed once per schema (`json_values`).
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from connect.api.schema import Schema
from connect.config import Config, setting
from connect.converters.base import Converter, SchemaAndValue
from connect.converters.json_columns import JsonColumns
from connect.converters.json_lines import json_lines
from connect.converters.json_schemas import schema_from_json, schema_to_json
from connect.converters.json_typed import typed_reader, typed_writer
from connect.converters.json_values import DecimalFormat, from_json, has_decimals, to_json
from connect.converters.json_zeros import without_leading_zeros
from connect.errors import ConfigError, DataError

if TYPE_CHECKING:
    import pyarrow as pa


class JsonConverterConfig(Config):
    """Settings of the JSON converter."""

    schemas_enable: bool = setting("Write and expect the envelope with the schema.", default=True)
    schemas_cache_size: int = setting("How many schemas are remembered.", default=1000)
    decimal_format: Literal["BASE64", "NUMERIC"] = setting(
        "How decimals are written: Kafka's base64 of the unscaled number, or a JSON number.", default="BASE64"
    )
    replace_null_with_default: bool = setting(
        "Whether a null field takes its schema's default.", default=True
    )
    schema_content: str | None = setting(
        "The schema of everything that is read, as JSON: records have no envelope then (KIP-1054).",
        default=None,
    )


class _Envelope(msgspec.Struct, forbid_unknown_fields=True):
    schema: msgspec.Raw
    payload: msgspec.Raw


class _Writer(NamedTuple):
    """The way from values of one schema to JSON."""

    start: bytes
    """The envelope up to the payload."""
    typed: Callable[[Sequence[Any]], Sequence[Any]] | None
    convert: Callable[[Any], Any] | None


class _Reader(NamedTuple):
    """The way from JSON to values of one schema."""

    schema: Schema | None
    typed: Callable[[Any], Any] | None
    convert: Callable[[Any], Any] | None
    decode: Callable[[Any], Any]


class JsonConverter(Converter):
    """`org.apache.kafka.connect.json.JsonConverter`."""

    CONFIG = JsonConverterConfig

    def __init__(self, config: Mapping[str, Any], *, is_key: bool) -> None:
        super().__init__(config, is_key=is_key)
        settings = JsonConverterConfig.parse(config)
        self._envelope = settings.schemas_enable
        self._fill = settings.replace_null_with_default
        self._format: DecimalFormat = settings.decimal_format
        encoder = msgspec.json.Encoder(decimal_format="number")
        self._encode, self._encode_lines = encoder.encode, encoder.encode_lines
        self._decode = msgspec.json.Decoder().decode
        self._decode_exactly = msgspec.json.Decoder(float_hook=decimal.Decimal).decode
        self._decode_envelope = msgspec.json.Decoder(_Envelope).decode
        self._reader = lru_cache(settings.schemas_cache_size)(self._make_reader)
        self._writers: dict[int, tuple[Schema, _Writer]] = {}
        self._writers_max = settings.schemas_cache_size
        self._content = self._content_reader(settings.schema_content) if self._envelope else None
        self._columns = JsonColumns()
        self._last: tuple[bytes, _Reader] | None = None
        """The start of the last envelope read, up to its payload. Most records of a topic have the same."""

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """Return JSON bytes; a null without a schema is a null record (a tombstone)."""
        return self.from_connect_many(topic, schema, (value,))[0]

    def from_connect_many(
        self, topic: str, schema: Schema | None, values: Sequence[Any]
    ) -> list[bytes | None]:
        """Return the JSON bytes of each value."""
        try:
            if schema is None:
                return self._bare(values)
            return self._with_schema(schema, values)
        except (TypeError, ValueError, ArithmeticError, AttributeError) as e:
            raise DataError(f"value for topic {topic} cannot be written as JSON: {e}") from e

    def _bare(self, values: Sequence[Any]) -> list[bytes | None]:
        encode = self._encode
        if not self._envelope:
            return [None if value is None else encode(value) for value in values]
        return [
            None if value is None else b'{"schema":null,"payload":%b}' % encode(value) for value in values
        ]

    def _with_schema(self, schema: Schema, values: Sequence[Any]) -> list[bytes | None]:
        writer, encode = self._writer(schema), self._encode
        converted = self._typed(writer, values)
        if converted is None:
            for value in values:
                schema.check(value)
            convert = writer.convert
            converted = values if convert is None else [convert(value) for value in values]
        if self._envelope:
            start = writer.start  # JSON has no line ends, so a line each is one call for the batch
            return [start + line + b"}" for line in self._encode_lines(converted).split(b"\n")[:-1]]
        return [None if value is None else encode(row) for value, row in zip(values, converted, strict=True)]

    def _typed(self, writer: _Writer, values: Sequence[Any]) -> Sequence[Any] | None:
        """Return the values as objects to encode, or None if they have to take the slower way."""
        if writer.typed is None:
            return None
        try:
            return writer.typed(values)
        except msgspec.ValidationError:
            return None

    def _writer(self, schema: Schema) -> _Writer:
        """Return the schema's writer, cached by the schema's identity."""
        cached = self._writers.get(id(schema))
        if cached is not None and cached[0] is schema:
            return cached[1]
        writer = _Writer(
            start=b'{"schema":%b,"payload":' % self._encode(schema_to_json(schema, self._format)),
            typed=typed_writer(schema, self._format, fill=self._fill),
            convert=to_json(schema, self._format, fill=self._fill),
        )
        if len(self._writers) >= self._writers_max:
            self._writers.clear()
        self._writers[id(schema)] = (schema, writer)
        return writer

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        """Return the value with its schema, which is None without the envelope."""
        if data is None:
            return SchemaAndValue(None, None)
        try:
            return self._read(data)
        except (msgspec.MsgspecError, UnicodeDecodeError) as e:
            data, error = without_leading_zeros(data), e
            try:
                if data is not None:
                    return self._read(data)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                pass
            raise DataError(self._complaint(topic, error)) from error
        except DataError as e:
            raise DataError(f"record of topic {topic} does not fit its schema: {e}") from e
        except (TypeError, ValueError, KeyError, AttributeError, ArithmeticError) as e:
            raise DataError(f"record of topic {topic} does not fit its schema: {e!r}") from e

    def to_arrow(self, topic: str, datas: pa.Array) -> pa.Array | None:
        """Return bare JSON objects as a struct array; None with schemas, and where single values differ."""
        return None if self._envelope else self._columns.read(topic, datas)

    def to_json(self, topic: str, datas: Sequence[bytes | None]) -> list[bytes | None] | None:
        """Return bare JSON as it is; None with schemas, and where texts have to be read one by one."""
        return None if self._envelope else json_lines(datas)

    def _read(self, data: bytes) -> SchemaAndValue:
        if not self._envelope:
            return SchemaAndValue(None, self._decode(data) if data else None)  # empty as in KAFKA-10477
        if self._content is not None:
            return SchemaAndValue(self._content.schema, _value(self._content, data))
        if self._last is not None and data.startswith(self._last[0]) and (typed := self._last[1].typed):
            try:
                return SchemaAndValue(self._last[1].schema, typed(data[len(self._last[0]) : -1]))
            except (msgspec.MsgspecError, DataError):
                pass
        envelope = self._decode_envelope(data)
        reader = self._reader(bytes(envelope.schema))
        payload = bytes(envelope.payload)
        if data.endswith(payload + b"}"):
            self._last = (data[: -len(payload) - 1], reader)
        return SchemaAndValue(reader.schema, _value(reader, payload))

    def _complaint(self, topic: str, error: Exception) -> str:
        if self._envelope and self._content is None:
            return (
                f"record of topic {topic}: {error}. With schemas.enable=true it must be exactly "
                '{"schema": ..., "payload": ...}; for plain JSON set schemas.enable=false'
            )
        return f"record of topic {topic} is not JSON: {error}"

    def _make_reader(self, schema_json: bytes) -> _Reader:
        schema = schema_from_json(self._decode(schema_json))
        if schema is None:
            return _Reader(None, None, None, self._decode)
        return _Reader(
            schema,
            typed_reader(schema, fill=self._fill),
            from_json(schema, fill=self._fill),
            self._decode_exactly if has_decimals(schema) else self._decode,
        )

    def _content_reader(self, content: str | None) -> _Reader | None:
        if not content:
            return None
        try:
            return self._make_reader(content.encode())
        except (msgspec.MsgspecError, DataError) as e:
            raise ConfigError("schema.content", content, f"is no schema: {e}") from e


def _value(reader: _Reader, payload: bytes) -> Any:
    """Return the value of a payload. Raises DataError if it does not fit the schema beside it."""
    if reader.typed is not None:
        try:
            return reader.typed(payload)
        except (msgspec.ValidationError, DataError):
            pass
    value = reader.decode(payload)
    if reader.convert is not None:
        value = reader.convert(value)
    if reader.schema is not None:
        reader.schema.check(value)
    return value
