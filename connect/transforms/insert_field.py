"""InsertField: adds fields with the record's topic, partition, offset or timestamp, or a constant."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from connect.api import schema as s
from connect.api.records import SinkRecord, SourceRecord
from connect.api.schema import Schema
from connect.config import setting
from connect.errors import ConfigError, DataError
from connect.transforms.fields import FillConfig, as_map, has_defaults, struct_copy, struct_of
from connect.transforms.parts import Edit, OnKey, OnValue, PartTransform, Plan

_PURPOSE = "field insertion"
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_SUFFIX = "A suffix `!` makes the field required, `?`, the default, optional."


class InsertFieldConfig(FillConfig):
    """Adds fields to the key or value. Null stays null."""

    topic_field: str | None = setting(f"Name of a field for the topic. {_SUFFIX}", default=None)
    partition_field: str | None = setting(f"Name of a field for the partition. {_SUFFIX}", default=None)
    offset_field: str | None = setting(
        f"Name of a field for the offset, for sink connectors only. {_SUFFIX}", default=None
    )
    timestamp_field: str | None = setting(f"Name of a field for the timestamp. {_SUFFIX}", default=None)
    static_field: str | None = setting(f"Name of a field for a constant. {_SUFFIX}", default=None)
    static_value: str | None = setting("The constant, a string.", default=None)

    def check(self) -> None:
        """Raise ConfigError unless there is something to insert."""
        names = (self.topic_field, self.partition_field, self.offset_field, self.timestamp_field)
        if all(name is None for name in (*names, self.static_field)):
            raise ConfigError("topic.field", "", "no field is configured: set one of the keys *.field")
        if self.static_field is not None and self.static_value is None:
            raise ConfigError("static.value", "", f"is required with static.field={self.static_field}")


class _Insertion(NamedTuple):
    """A field to add."""

    name: str
    schema: Schema
    value: Callable[[Any], Any]
    """Called with the record; None where it has no such property."""
    typed: Callable[[Any], Any]
    """Converts a value to that of the schema."""


def _timestamp(record: SourceRecord | SinkRecord) -> int | None:
    timestamp = record.timestamp
    return None if timestamp is None or timestamp < 0 else timestamp


def _offset(record: SourceRecord | SinkRecord) -> int:
    if not isinstance(record, SinkRecord):
        raise DataError("offset.field needs a sink connector: records of a source have no offset yet")
    return record.offset


def _as_datetime(timestamp: int) -> dt.datetime:
    return _EPOCH + dt.timedelta(milliseconds=timestamp)


def _same(value: Any) -> Any:
    return value


class InsertField(PartTransform[InsertFieldConfig]):
    """The transform InsertField, for `$Key` and `$Value`."""

    CONFIG = InsertFieldConfig

    def prepare(self) -> None:
        """Make a list of the fields to add."""
        config, constant = self.config, self.config.static_value
        every = (
            (config.topic_field, s.string, attrgetter("topic"), _same),
            (config.partition_field, s.int32, attrgetter("partition"), _same),
            (config.offset_field, s.int64, _offset, _same),
            (config.timestamp_field, s.timestamp, _timestamp, _as_datetime),
            (config.static_field, s.string, lambda record: constant, _same),
        )
        self._insertions = []
        for text, make, value, typed in every:
            if text is not None:
                name = text[:-1] if text.endswith(("?", "!")) else text
                schema = make(optional=not text.endswith("!"))
                self._insertions.append(_Insertion(name, schema, value, typed))

    def plain(self, value: Any, record: Any) -> Any:
        """Return the map with the fields; a timestamp is in milliseconds."""
        inserted = as_map(value, _PURPOSE).copy()
        for name, _, read, _ in self._insertions:
            item = read(record)
            if item is not None:
                inserted[name] = item
        return inserted

    def plain_edit(self) -> Edit:
        """Return the edit of maps, which adds the fields."""
        insertions = self._insertions

        def edit(values: list[dict[str, Any]], records: Sequence[Any]) -> None:
            for name, _, read, _ in insertions:
                for value, item in zip(values, map(read, records), strict=True):
                    if item is not None:
                        value[name] = item

        return edit

    def planned(self, schema: Schema) -> Plan:
        """Return the plan of a schema. Raises DataError if it has a field of such a name already."""
        insertions = self._insertions
        names = [*schema.fields, *(insertion.name for insertion in insertions)]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise DataError(f"there is a field of this name already: {', '.join(twice)}")
        updated = struct_of(schema, {**schema.fields, **{i.name: i.schema for i in insertions}})
        copy = struct_copy(schema, self.config.replace_null_with_default, _PURPOSE)

        def change(value: Any, record: Any) -> Any:
            inserted = copy(value)
            for name, _, read, typed in insertions:
                item = read(record)
                inserted[name] = None if item is None else typed(item)
            return inserted

        def edit(values: list[dict[str, Any]], records: Sequence[Any]) -> None:
            for name, _, read, typed in insertions:
                if typed is _same:
                    for value, item in zip(values, map(read, records), strict=True):
                        value[name] = item
                else:
                    for value, item in zip(values, map(read, records), strict=True):
                        value[name] = None if item is None else typed(item)

        return Plan(schema, updated, change, None if has_defaults(schema) else edit)


class InsertFieldKey(InsertField, OnKey[InsertFieldConfig]):
    """`InsertField$Key`."""


class InsertFieldValue(InsertField, OnValue[InsertFieldConfig]):
    """`InsertField$Value`."""
