"""The test whether a type's values can be changed in place; if not, a store may return its own objects."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import inspect

_SCALARS = (
    inspect.NoneType,
    inspect.BoolType,
    inspect.IntType,
    inspect.FloatType,
    inspect.StrType,
    inspect.BytesType,
    inspect.DateTimeType,
    inspect.TimeType,
    inspect.DateType,
    inspect.TimeDeltaType,
    inspect.UUIDType,
    inspect.DecimalType,
    inspect.EnumType,
    inspect.LiteralType,
)


def is_immutable(type: Any) -> bool:
    """Return True if values of a type, or of an annotation, are immutable including all their parts.

    Scalars are, and tuples, frozen sets, named tuples, frozen dataclasses and frozen ``msgspec.Struct``s of
    them. A type unknown to msgspec is assumed to be mutable.
    """
    try:
        return _is_immutable(inspect.type_info(type), ())
    except (TypeError, NameError):  # an annotation that msgspec does not support, or cannot resolve
        return False


def _is_immutable(info: inspect.Type, above: tuple[Any, ...]) -> bool:
    match info:
        case inspect.Metadata():
            return _is_immutable(info.type, above)
        case inspect.UnionType():
            parts = list(info.types)
        case inspect.TupleType():
            parts = list(info.item_types)
        case inspect.VarTupleType() | inspect.FrozenSetType():
            parts = [info.item_type]
        case inspect.StructType() | inspect.DataclassType() | inspect.NamedTupleType():
            if info.cls in above:  # a type that contains itself adds nothing new
                return True
            if not _is_frozen(info):
                return False
            above, parts = (*above, info.cls), [field.type for field in info.fields]
        case _:
            return isinstance(info, _SCALARS)
    return all(_is_immutable(part, above) for part in parts)


def _is_frozen(info: inspect.StructType | inspect.DataclassType | inspect.NamedTupleType) -> bool:
    match info:
        case inspect.StructType():
            cls: Any = info.cls
            config: msgspec.structs.StructConfig = cls.__struct_config__
            return config.frozen
        case inspect.DataclassType():
            parameters = getattr(info.cls, "__dataclass_params__", None)  # classes of attrs have none
            return parameters is not None and bool(parameters.frozen)
        case _:
            return True
