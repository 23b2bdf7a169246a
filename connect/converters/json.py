"""JsonConverter: JSON, bare or in the envelope `{"schema": ..., "payload": ...}`.

Bare JSON without a schema goes through one msgspec encoder, a batch at a time. With a schema, the
functions that turn values into JSON and back are composed once per schema (`json_values`).
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

import msgspec

from connect.api.schema import Schema
from connect.config import Config, setting
from connect.converters.base import Converter, SchemaAndValue
from connect.converters.json_schemas import schema_from_json, schema_to_json
from connect.converters.json_values import DecimalFormat, from_json, has_decimals, to_json
from connect.errors import DataError


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


class _Envelope(msgspec.Struct, forbid_unknown_fields=True):
    schema: msgspec.Raw
    payload: msgspec.Raw


_Prepared = tuple[bytes, Callable[[Any], Any] | None]
_Reader = tuple[Schema | None, Callable[[Any], Any] | None, Callable[[Any], Any]]


class JsonConverter(Converter):
    """`org.apache.kafka.connect.json.JsonConverter`."""

    CONFIG = JsonConverterConfig

    def __init__(self, config: Mapping[str, Any], *, is_key: bool) -> None:
        super().__init__(config, is_key=is_key)
        settings = JsonConverterConfig.parse(config)
        self._envelope = settings.schemas_enable
        self._fill = settings.replace_null_with_default
        self._format: DecimalFormat = settings.decimal_format
        self._encode = msgspec.json.Encoder(decimal_format="number").encode
        self._decode = msgspec.json.Decoder().decode
        self._decode_exactly = msgspec.json.Decoder(float_hook=decimal.Decimal).decode
        self._decode_envelope = msgspec.json.Decoder(_Envelope).decode
        self._reader = lru_cache(settings.schemas_cache_size)(self._make_reader)
        self._prepared: dict[int, tuple[Schema, _Prepared]] = {}
        self._prepared_max = settings.schemas_cache_size

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
        start, convert = self._prepare(schema)
        for value in values:
            schema.check(value)
        if convert is not None:
            values = [convert(value) for value in values]
        if self._envelope:
            return [b"%b%b}" % (start, self._encode(value)) for value in values]
        return [None if value is None else self._encode(value) for value in values]

    def _prepare(self, schema: Schema) -> _Prepared:
        """Return the envelope's constant start and the value's conversion, cached by schema identity."""
        cached = self._prepared.get(id(schema))
        if cached is not None and cached[0] is schema:
            return cached[1]
        start = b'{"schema":%b,"payload":' % self._encode(schema_to_json(schema, self._format))
        prepared = (start, to_json(schema, self._format, fill=self._fill))
        if len(self._prepared) >= self._prepared_max:
            self._prepared.clear()
        self._prepared[id(schema)] = (schema, prepared)
        return prepared

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        """Return the value with its schema, which is None without the envelope."""
        if data is None:
            return SchemaAndValue(None, None)
        try:
            if not self._envelope:
                return SchemaAndValue(None, self._decode(data))
            envelope = self._decode_envelope(data)
            schema, convert, decode = self._reader(bytes(envelope.schema))
            value = decode(envelope.payload)
            if convert is not None:
                value = convert(value)
            if schema is not None:
                schema.check(value)  # the payload need not fit the schema beside it
            return SchemaAndValue(schema, value)
        except (msgspec.MsgspecError, UnicodeDecodeError) as e:
            raise DataError(self._complaint(topic, e)) from e
        except DataError as e:
            raise DataError(f"record of topic {topic} does not fit its schema: {e}") from e
        except (TypeError, ValueError, KeyError, AttributeError, ArithmeticError) as e:
            raise DataError(f"record of topic {topic} does not fit its schema: {e!r}") from e

    def _complaint(self, topic: str, error: Exception) -> str:
        if self._envelope:
            return (
                f"record of topic {topic}: {error}. With schemas.enable=true it must be exactly "
                '{"schema": ..., "payload": ...}; for plain JSON set schemas.enable=false'
            )
        return f"record of topic {topic} is not JSON: {error}"

    def _make_reader(self, schema_json: bytes) -> _Reader:
        schema = schema_from_json(self._decode(schema_json))
        if schema is None:
            return None, None, self._decode
        decode = self._decode_exactly if has_decimals(schema) else self._decode
        return schema, from_json(schema, fill=self._fill), decode
