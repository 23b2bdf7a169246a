"""Numbers, big-endian and of a fixed size, as Kafka's serializers write them."""

from __future__ import annotations

import struct

from millstream.data_types.data_type import DataType, JsonValue, WrongData


def _integer(name: str, code: str) -> DataType:
    layout = struct.Struct(f">{code}")

    def decode(data: bytes) -> int:
        return int(_unpack(layout, data, name))

    def parse(text: bytes) -> bytes:
        try:
            return pack(int(text))
        except ValueError:
            raise WrongData(f"{text.decode('utf-8', 'replace')!r} is not a whole number") from None

    def pack(number: int) -> bytes:
        try:
            return layout.pack(number)
        except struct.error:
            edge = 1 << (8 * layout.size - 1)
            raise WrongData(f"{number} is not {name}: {-edge} to {edge - 1}") from None

    def encode(value: JsonValue) -> bytes:
        if not isinstance(value, int) or isinstance(value, bool):
            raise WrongData(f"{value!r} is not a whole number")
        return pack(value)

    return DataType(name, decode, lambda data: b"%d" % decode(data), encode, parse)


def _floating(name: str, code: str) -> DataType:
    layout = struct.Struct(f">{code}")

    def decode(data: bytes) -> float:
        return float(_unpack(layout, data, name))

    def parse(text: bytes) -> bytes:
        try:
            return pack(float(text))
        except ValueError:
            raise WrongData(f"{text.decode('utf-8', 'replace')!r} is not a number") from None

    def pack(number: float) -> bytes:
        try:
            return layout.pack(number)
        except OverflowError:
            raise WrongData(f"{number} is too large for {name}") from None

    def encode(value: JsonValue) -> bytes:
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise WrongData(f"{value!r} is not a number")
        return pack(float(value))

    def text(data: bytes) -> bytes:
        # Nine digits say any float of 32 bits exactly, and no digits of the double it is held in.
        return (f"{decode(data):.9g}" if layout.size == 4 else repr(decode(data))).encode()

    return DataType(name, decode, text, encode, parse)


def _unpack(layout: struct.Struct, data: bytes, name: str) -> int | float:
    if len(data) != layout.size:
        raise WrongData(f"{len(data)} bytes are not {name}, which has {layout.size}")
    number: int | float = layout.unpack(data)[0]
    return number


SHORT = _integer("short", "h")
INT = _integer("int", "i")
LONG = _integer("long", "q")
FLOAT = _floating("float", "f")
DOUBLE = _floating("double", "d")
