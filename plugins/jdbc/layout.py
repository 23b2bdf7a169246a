"""The layout of rows: which columns a record's key and value give, with their schemas."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from connect.api import DataError, Schema, SinkRecord, Type, schema
from plugins.jdbc.sink_config import JdbcSinkConfig

KAFKA_FIELDS = ("__connect_topic", "__connect_partition", "__connect_offset")
_LAYOUTS_MAX = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """The columns of rows of one table: the key's first. A delete has only the key's."""

    table: str
    keys: tuple[str, ...]
    fields: tuple[str, ...]
    schemas: Mapping[str, Schema | None]
    """By column; None where a record without a schema has null."""
    is_delete: bool
    values: Callable[[SinkRecord], tuple[Any, ...]]
    """Return a record's row."""

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns, in the order of the values."""
        return self.keys + self.fields


class Layouts:
    """The layouts of records by topic and schemas, each made once."""

    def __init__(self, config: JdbcSinkConfig) -> None:
        self._config = config
        self._cache: dict[Any, tuple[Layout, Schema | None, Schema | None]] = {}

    def of(self, record: SinkRecord) -> Layout:
        """Return the layout of a record. Raises DataError if the record cannot be a row."""
        key_schema, value_schema = record.key_schema, record.value_schema
        identity = (
            record.topic,
            id(key_schema) if key_schema else _signature(record.key),
            id(value_schema) if value_schema and record.value is not None else _signature(record.value),
        )
        cached = self._cache.get(identity)
        if cached is None:
            if len(self._cache) >= _LAYOUTS_MAX:
                self._cache.clear()
            # The schemas are referenced, so that no other takes their identity.
            cached = self._cache[identity] = (self._make(record), key_schema, value_schema)
        return cached[0]

    def _make(self, record: SinkRecord) -> Layout:
        config = self._config
        table = config.table_name_format.replace("${topic}", record.topic)
        if record.value is None:
            if not config.delete_enabled:
                raise DataError(
                    "the record has no value; delete.enabled=true would delete the row of its key"
                )
            keys, schemas, of_key = self._key(record)
            return Layout(table, keys, (), schemas, True, of_key)
        if not isinstance(record.value, dict):
            raise DataError(f"the value is {type(record.value).__name__}, a row needs an object with fields")
        keys, schemas, of_key = self._key(record)
        wish = config.fields_whitelist
        value_schemas = _schemas(record.value, record.value_schema)
        fields = tuple(name for name in value_schemas if name not in schemas and (not wish or name in wish))
        if not keys and not fields:
            raise DataError("the value has no field that fields.whitelist names")

        of_value = _getter((*keys, *fields) if config.pk_mode == "record_value" else fields)
        is_value_only = config.pk_mode in ("none", "record_value")

        def values(each: SinkRecord) -> tuple[Any, ...]:
            return of_value(each.value) if is_value_only else of_key(each) + of_value(each.value)

        merged = {**schemas, **{name: value_schemas[name] for name in fields}}
        return Layout(table, keys, fields, merged, False, values)

    def _key(
        self, record: SinkRecord
    ) -> tuple[tuple[str, ...], dict[str, Schema | None], Callable[[SinkRecord], tuple[Any, ...]]]:
        config = self._config
        names = tuple(config.pk_fields)
        match config.pk_mode:
            case "none":
                return (), {}, lambda each: ()
            case "kafka":
                names = names or KAFKA_FIELDS
                kinds = (schema.string(), schema.int32(), schema.int64())
                return (
                    names,
                    dict(zip(names, kinds, strict=True)),
                    lambda each: (each.topic, each.partition, each.offset),
                )
            case "record_value":
                return _picked(names, record.value, record.value_schema, lambda each: each.value, "value")
        if record.key is None:
            raise DataError("the record has no key, which pk.mode=record_key needs")
        if isinstance(record.key, dict):
            return _picked(names, record.key, record.key_schema, lambda each: each.key, "key")
        if len(names) != 1:
            raise DataError(f"the key is no object: pk.fields must name one column, it names {len(names)}")
        return names, {names[0]: record.key_schema or schema_of(record.key)}, lambda each: (each.key,)


def _picked(
    names: tuple[str, ...],
    sample: Any,
    shape: Schema | None,
    part: Callable[[SinkRecord], Any],
    what: str,
) -> tuple[tuple[str, ...], dict[str, Schema | None], Callable[[SinkRecord], tuple[Any, ...]]]:
    if not isinstance(sample, dict):
        raise DataError(f"the {what} is {type(sample).__name__}, pk.mode needs an object with fields")
    schemas = _schemas(sample, shape)
    names = names or tuple(schemas)
    if missing := [name for name in names if name not in schemas]:
        raise DataError(f"the {what} has no field {', '.join(missing)}, which pk.fields names")
    getter = _getter(names)
    return (
        names,
        {name: schemas[name] for name in names},
        lambda each: getter(part(each)),
    )


def _getter(names: tuple[str, ...]) -> Callable[[dict[str, Any]], tuple[Any, ...]]:
    """Return a function that returns a struct's fields; a field that is not there is null."""
    if len(names) < 2:
        return lambda value: tuple([value.get(name) for name in names])
    all_of = operator.itemgetter(*names)

    def get(value: dict[str, Any]) -> tuple[Any, ...]:
        try:
            return all_of(value)  # type: ignore[no-any-return]
        except KeyError:
            return tuple([value.get(name) for name in names])

    return get


def _signature(value: Any) -> Any:
    """Return what the layout of a value without a schema depends on: its fields and their types."""
    if isinstance(value, dict):
        return tuple((name, type(item)) for name, item in value.items())
    return type(value)


def _schemas(value: dict[str, Any], shape: Schema | None) -> dict[str, Schema | None]:
    if shape is not None and shape.type is Type.STRUCT:
        return dict(shape.fields)
    return {name: schema_of(item) for name, item in value.items()}


def schema_of(value: Any) -> Schema | None:
    """Return the schema of a value that has none; None for null."""
    if value is None:
        return None
    makers: list[tuple[type, Callable[..., Schema]]] = [
        (bool, schema.boolean),
        (int, schema.int64),
        (float, schema.float64),
        (bytes, schema.bytes_),
    ]
    for kind, maker in makers:
        if isinstance(value, kind):
            return maker(optional=True)
    return schema.string(optional=True)
