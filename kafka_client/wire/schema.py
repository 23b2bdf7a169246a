"""The fields of a message class at one version, and their types.

They are read once from the annotations (in the vocabulary of `message`). The code generators `encoder` and
`decoder` use nothing else.
"""

from __future__ import annotations

import types
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Final, TypeAlias, Union, get_args, get_origin, get_type_hints

import msgspec

from kafka_client.wire.message import Kind, Message, V

FIXED: Final[dict[Kind, tuple[str, int]]] = {
    Kind.INT8: ("b", 1),
    Kind.INT16: ("h", 2),
    Kind.INT32: ("i", 4),
    Kind.INT64: ("q", 8),
    Kind.UINT16: ("H", 2),
    Kind.UINT32: ("I", 4),
    Kind.BOOLEAN: ("?", 1),
    Kind.FLOAT64: ("d", 8),
    Kind.UUID: ("16s", 16),
}
"""Kinds of fixed size: their `struct` character and their bytes."""

SHORT_ARRAY: Final = 32
"""Arrays of fixed-size values below this length have a compiled `struct` for every length."""


@dataclass(frozen=True, slots=True)
class Array:
    """An array of elements that are never null."""

    element: Shape


Shape: TypeAlias = Kind | Array | type[Message]


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field of a struct at one version."""

    name: str
    shape: Shape
    nullable: bool
    tag: int | None
    default: Any
    """The value of an absent tagged field; immutable, or None if `make_default` is set."""
    make_default: Any
    """Returns the default if it is mutable (a list or a struct), else None."""

    @classmethod
    def bare(cls, shape: Shape) -> Field:
        """Return a field without a name: an array's element."""
        return cls(name="", shape=shape, nullable=False, tag=None, default=None, make_default=None)

    @property
    def plain_default(self) -> Any:
        """The default to compare with."""
        return self.make_default() if self.make_default else self.default


@cache
def fields_of(cls: type[Message], version: int) -> tuple[Field, ...]:
    """Return the fields of `cls` at `version`, in the order of the wire; tagged ones last, by tag."""
    hints = get_type_hints(cls, include_extras=True)
    plain: list[Field] = []
    tagged: list[Field] = []
    for info in msgspec.structs.fields(cls):
        shape, optional, facts = _read(hints[info.name])
        if not facts.first <= version <= facts.last:
            continue
        factory = None if info.default_factory is msgspec.NODEFAULT else info.default_factory
        if factory is None and info.default is msgspec.NODEFAULT:
            raise TypeError(f"{cls.__name__}.{info.name} has no default")
        field = Field(
            name=info.name,
            shape=shape,
            nullable=optional and version >= facts.nullable,
            tag=facts.tag,
            default=None if factory else info.default,
            make_default=factory,
        )
        (plain if facts.tag is None else tagged).append(field)
    tagged.sort(key=lambda field: field.tag or 0)
    return (*plain, *tagged)


def size_min(shape: Shape, version: int, flexible: bool) -> int:
    """Return the fewest bytes that a value of `shape` takes, to check an array's length against the bytes
    left.
    """
    if isinstance(shape, Kind):
        if shape in FIXED:
            return FIXED[shape][1]
        return 1 if flexible else 2 if shape is Kind.STRING else 4
    if isinstance(shape, Array):
        return 1 if flexible else 4
    total = 1 if flexible else 0
    for field in fields_of(shape, version):
        if field.tag is None:
            is_null_struct = field.nullable and isinstance(field.shape, type)
            total += 1 if is_null_struct else size_min(field.shape, version, flexible)
    return total


def _read(hint: Any) -> tuple[Shape, bool, V]:
    """Return an annotation's shape, whether it is optional, and its facts about versions."""
    facts = V()
    kind: Kind | None = None
    if get_origin(hint) is Annotated:
        hint, *extras = get_args(hint)
        for extra in extras:
            if isinstance(extra, V):
                facts = extra
            elif isinstance(extra, Kind):
                kind = extra
    if kind is not None:
        return kind, False, facts
    if get_origin(hint) in (Union, types.UnionType):
        (inner,) = (arg for arg in get_args(hint) if arg is not types.NoneType)
        return _read(inner)[0], True, facts
    if get_origin(hint) is list:
        return Array(_read(get_args(hint)[0])[0]), False, facts
    if isinstance(hint, type) and issubclass(hint, Message):
        return hint, False, facts
    raise TypeError(f"{hint!r} is not in the vocabulary of messages")
