"""Serdes: how keys and values become bytes. Wherever one is asked for, a type will do.

``str`` is UTF-8 text, ``bytes`` passes through, ``int`` is Kafka's Long, ``float`` its Double, ``bool``,
``UUID``; any other type (a ``msgspec.Struct``, a dataclass, ``dict``, ``list``) is JSON of that type.
"""

from __future__ import annotations

from typing import Any, TypeAlias
from uuid import UUID

from streams.serdes.base import Serde
from streams.serdes.immutable import is_immutable
from streams.serdes.json import Json, MessagePack
from streams.serdes.primitive import Boolean, Bytes, Double, Integer, Long, String, Uuid
from streams.serdes.windowed import SessionWindowed, TimeWindowed, Window, Windowed

SerdeLike: TypeAlias = Serde[Any] | type[Any] | Any
"""A serde, or a type that stands for one."""

_BY_TYPE: dict[Any, Serde[Any]] = {
    str: String(),
    bytes: Bytes(),
    int: Long(),
    float: Double(),
    bool: Boolean(),
    UUID: Uuid(),
}


def serde_for(wanted: SerdeLike | None) -> Serde[Any] | None:
    """Return the serde that ``wanted`` is or stands for; ``None`` means not decided here."""
    if wanted is None or isinstance(wanted, Serde):
        return wanted
    known = _BY_TYPE.get(wanted)
    return known if known is not None else Json(wanted)


__all__ = [
    "Boolean",
    "Bytes",
    "Double",
    "Integer",
    "Json",
    "Long",
    "MessagePack",
    "Serde",
    "SerdeLike",
    "SessionWindowed",
    "String",
    "TimeWindowed",
    "Uuid",
    "Window",
    "Windowed",
    "is_immutable",
    "serde_for",
]
