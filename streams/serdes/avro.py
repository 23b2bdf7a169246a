"""Avro of a given schema, through fastavro (the extra ``avro``): plain binary, without a registry."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any, TypeAlias

from streams.serdes.base import Serde

AvroSchema: TypeAlias = str | Mapping[str, Any] | list[Any]
"""JSON text, or the same as Python objects."""


class Avro(Serde[Any]):
    """Plain Avro of one schema, given as JSON text or Python objects; records are dicts.

    ``reader_schema``: the schema to read values as, if it is not the one they were written by. Raises
    ValueError for an invalid schema, and ImportError without fastavro.
    """

    def __init__(
        self,
        schema: AvroSchema,
        reader_schema: AvroSchema | None = None,
    ) -> None:
        try:
            import fastavro
        except ImportError as error:
            raise ImportError("Avro needs fastavro: pip install 'millstream[avro]'") from error
        self._fastavro: Any = fastavro
        self._schema = self._parsed(schema)
        self._reader_schema = None if reader_schema is None else self._parsed(reader_schema)

    def _parsed(self, schema: AvroSchema) -> Any:
        try:
            return self._fastavro.parse_schema(json.loads(schema) if isinstance(schema, str) else schema)
        except (self._fastavro.schema.SchemaParseException, self._fastavro.schema.UnknownType) as error:
            raise ValueError(f"not an Avro schema: {error!r}") from error

    def serialize(self, value: Any) -> bytes:
        stream = io.BytesIO()
        try:
            self._fastavro.schemaless_writer(stream, self._schema, value)
        except (KeyError, AttributeError, IndexError, OverflowError) as error:
            raise ValueError(f"not of the Avro schema: {error!r}") from error
        return stream.getvalue()

    def deserialize(self, data: bytes) -> Any:
        stream = io.BytesIO(data)
        try:
            value = self._fastavro.schemaless_reader(stream, self._schema, self._reader_schema)
        # The errors that fastavro raises for bytes that are not of the schema.
        except (
            EOFError,
            ValueError,
            IndexError,
            KeyError,
            TypeError,
            AttributeError,
            OverflowError,
        ) as error:
            raise ValueError(f"{len(data)} bytes are not Avro of the schema: {error!r}") from error
        if (rest := len(data) - stream.tell()) != 0:
            raise ValueError(f"not Avro of the schema: {rest} of {len(data)} bytes are left over")
        return value
