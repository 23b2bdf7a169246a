"""Kafka's deserializers by the names of their classes: from bytes to what Java shows of the object."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import TypeAlias
from uuid import UUID

from millstream.data_types.data_type import WrongData
from millstream.kafka_tools.java.java_errors import COMMON
from millstream.kafka_tools.java.java_numbers import shown_double

Deserializer: TypeAlias = Callable[[bytes], bytes]
"""Formats bytes as text. Raises WrongData if they are not of its type."""

PACKAGE = f"{COMMON}.serialization."


def find_deserializer(name: str) -> Deserializer | None:
    """Return the deserializer of that Java class, or None."""
    return _DESERIALIZERS.get(name.removeprefix(PACKAGE)) if name.startswith(PACKAGE) else None


def shown_float(value: float) -> str:
    """Return the text of Float.toString: the fewest digits that identify the Float."""
    if not math.isfinite(value):
        return shown_double(value)
    texts = (f"{value:.{digits}g}" for digits in range(1, 10))
    return shown_double(next(float(text) for text in texts if _as_single(float(text)) == value))


def _as_single(number: float) -> float:
    return float(struct.unpack(">f", struct.pack(">f", number))[0])


def _number(name: str, code: str, show: Callable[[float], str] = str) -> Deserializer:
    layout = struct.Struct(f">{code}")

    def read(data: bytes) -> bytes:
        if len(data) != layout.size:
            raise WrongData(f"Size of data received by {name}Deserializer is not {layout.size}")
        return show(layout.unpack(data)[0]).encode()

    return read


def _boolean(data: bytes) -> bytes:
    if len(data) != 1 or data[0] > 1:
        raise WrongData(f"Unexpected value received by BooleanDeserializer: {data.hex()}")
    return b"true" if data[0] else b"false"


def _bytes(data: bytes) -> bytes:
    shown = (chr(each) if 32 <= each <= 126 and each != 92 else f"\\x{each:02X}" for each in data)
    return "".join(shown).encode()


def _uuid(data: bytes) -> bytes:
    try:
        return str(UUID(data.decode())).encode()
    except ValueError:
        raise WrongData(f"Error parsing data into UUID: {data!r}") from None


def _void(data: bytes) -> bytes:
    raise WrongData("Data should be null for a VoidDeserializer.")


_DESERIALIZERS: dict[str, Deserializer] = {
    "StringDeserializer": lambda data: data.decode("utf-8", "replace").encode(),
    "IntegerDeserializer": _number("Integer", "i"),
    "LongDeserializer": _number("Long", "q"),
    "ShortDeserializer": _number("Short", "h"),
    "DoubleDeserializer": _number("Double", "d", shown_double),
    "FloatDeserializer": _number("Float", "f", shown_float),
    "BooleanDeserializer": _boolean,
    "UUIDDeserializer": _uuid,
    "BytesDeserializer": _bytes,
    "ByteBufferDeserializer": lambda data: (
        b"java.nio.HeapByteBuffer[pos=0 lim=%d cap=%d]" % (len(data), len(data))
    ),
    "ByteArrayDeserializer": lambda data: data,
    "VoidDeserializer": _void,
}
"""Deserializers by class. Java prints a byte array's address, the one here prints the bytes."""
