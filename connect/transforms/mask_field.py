"""MaskField: replaces fields by a null-equivalent of their type, or by a replacement."""

from __future__ import annotations

import contextlib
import datetime as dt
import decimal
from collections.abc import Callable, Sequence
from typing import Any

from connect.api.schema import DECIMAL, Schema, Type
from connect.config import setting
from connect.errors import DataError
from connect.transforms.fields import FillConfig, as_map, distinct, has_defaults, non_empty, struct_copy
from connect.transforms.java_numbers import as_float32, parse_decimal, wrapped
from connect.transforms.parts import Edit, OnKey, OnValue, PartTransform, Plan

_PURPOSE = "masking fields"
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_BITS = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32}
_NULLS: dict[type, Callable[[], Any]] = {
    bool: bool,
    int: int,
    float: float,
    str: str,
    decimal.Decimal: decimal.Decimal,
    dt.date: _EPOCH.date,
    dt.time: dt.time,
    dt.datetime: lambda: _EPOCH,
    list: list,
    tuple: list,
    dict: dict,
}
"""The null-equivalents by the types of the values."""
_SAMPLES: dict[Type, Any] = {
    **dict.fromkeys((*_BITS, Type.INT64), 1),
    **dict.fromkeys((Type.FLOAT32, Type.FLOAT64), 1.0),
    Type.STRING: "text",
}
"""A value of each type whose mask does not depend on the value."""


class MaskFieldConfig(FillConfig):
    """Replaces fields by a null-equivalent (0, false, an empty string or list, 1970) or a replacement."""

    fields: list[str] = setting("Names of the fields to mask.", importance="HIGH", check=distinct)
    replacement: str | None = setting(
        "The replacement, for fields that are numbers or strings.",
        default=None,
        importance="LOW",
        check=non_empty,
    )


class MaskField(PartTransform[MaskFieldConfig]):
    """The transform MaskField, for `$Key` and `$Value`."""

    CONFIG = MaskFieldConfig
    passes_null = False

    def prepare(self) -> None:
        """Take the names."""
        self._names = self.config.fields

    def plain(self, value: Any, record: Any) -> Any:
        """Return the map with its fields masked; a field that is not there becomes null."""
        masked = as_map(value, _PURPOSE).copy()
        for name in self._names:
            item = masked.get(name)
            masked[name] = None if item is None else self._masked(item, name, None)
        return masked

    def plain_edit(self) -> Edit:
        """Return the edit of maps, which masks the fields."""
        masked, is_replaced = self._masked, self.config.replacement is not None

        def edit(values: list[dict[str, Any]], records: Sequence[Any]) -> None:
            for name in self._names:
                for value in values:
                    item = value.get(name)
                    if type(item) is str and not is_replaced:  # as nearly always
                        value[name] = ""
                    else:
                        value[name] = None if item is None else masked(item, name, None)

        return edit

    def planned(self, schema: Schema) -> Plan:
        """Return the plan of a schema, which stays as it is."""
        copy = struct_copy(schema, self.config.replace_null_with_default, _PURPOSE)
        fields = [(name, schema.fields[name]) for name in self._names if name in schema.fields]
        masks = self._constants(fields)
        fields = [(name, field) for name, field in fields if name not in masks]

        def change(value: Any, record: Any) -> Any:
            masked = copy(value)
            for name, mask in masks.items():
                if masked.get(name) is not None:
                    masked[name] = mask
            for name, field in fields:
                item = masked.get(name)
                if item is not None:
                    masked[name] = self._masked(item, name, field)
            return masked

        def edit(values: list[dict[str, Any]], records: Sequence[Any]) -> None:
            for name, mask in masks.items():
                for value in values:
                    if value.get(name) is not None:
                        value[name] = mask
            for name, field in fields:
                for value in values:
                    item = value.get(name)
                    if item is not None:
                        value[name] = self._masked(item, name, field)

        return Plan(schema, schema, change, None if has_defaults(schema) else edit)

    def _constants(self, fields: list[tuple[str, Schema]]) -> dict[str, Any]:
        """Return the masks of fields whose type alone says what they are; not those that raise DataError."""
        masks: dict[str, Any] = {}
        for name, field in fields:
            if field.name is None and field.type in _SAMPLES:
                with contextlib.suppress(DataError):
                    masks[name] = self._masked(_SAMPLES[field.type], name, field)
        return masks

    def _masked(self, value: Any, name: str, field: Schema | None) -> Any:
        replacement = self.config.replacement
        if replacement is not None:
            return _replaced(value, name, field, replacement)
        make = _NULLS.get(type(value))
        if make is None or (field is not None and field.type is Type.STRUCT):
            raise DataError(f"field {name} cannot be masked: it is {type(value).__name__}")
        return 0.0 if field is not None and field.type in (Type.FLOAT32, Type.FLOAT64) else make()


def _replaced(value: Any, name: str, field: Schema | None, replacement: str) -> Any:
    """Return the replacement as the type of the field. Raises DataError if it has no such form."""
    if isinstance(value, str):
        return replacement
    if isinstance(value, bool) or not isinstance(value, (int, float, decimal.Decimal)):
        raise DataError(f"field {name} takes no replacement: it is {type(value).__name__}")
    try:
        number = parse_decimal(replacement)
    except ValueError as e:
        raise DataError(f"the replacement of field {name}: {e}") from e
    if isinstance(value, decimal.Decimal) and (field is None or field.name == DECIMAL):
        return number
    kind = field.type if field is not None else Type.FLOAT64 if isinstance(value, float) else Type.INT64
    if kind in (Type.FLOAT32, Type.FLOAT64):
        return as_float32(float(number)) if kind is Type.FLOAT32 else float(number)
    if number.adjusted() > 400:
        raise DataError(f"the replacement of field {name} is too large")
    return wrapped(wrapped(int(number), 64), _BITS.get(kind, 64))


class MaskFieldKey(MaskField, OnKey[MaskFieldConfig]):
    """`MaskField$Key`."""


class MaskFieldValue(MaskField, OnValue[MaskFieldConfig]):
    """`MaskField$Value`."""
