"""Values with an inferred schema, parsed from text: Kafka's Values.parseString.

12 is an int8, 1.5 a float, true a boolean, 2024-01-31 a date, [1, 2] an array, {"a": 1} a map, any other text
a string.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from connect.api import schema as s
from connect.api.schema import Schema, Type
from connect.errors import DataError
from connect.transforms.java_numbers import as_float32, parse_decimal, wrapped
from connect.transforms.times import parse_date, parse_time, parse_timestamp

SchemaValue = tuple[Schema | None, Any]
_TOKENS = re.compile(r'[",:\[\]{}]|(?:[^",:\[\]{}\\]|\\.|\\$)+', re.DOTALL)
_CONSTANTS: dict[str, SchemaValue] = {
    "null": (None, None),
    "true": (s.boolean(), True),
    "false": (s.boolean(), False),
}
_INTS = ((8, s.int8()), (16, s.int16()), (32, s.int32()), (64, s.int64()))
_ORDER = (Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.FLOAT32, Type.FLOAT64)
_DEEPEST = 100
"""How deep arrays and maps may nest."""


def parse_literal(text: str) -> SchemaValue:
    """Return the value of a text with its schema; None for both if the text is `null`."""
    return _Parser(text).parse() if text else (s.string(), "")


class _Parser:
    """The tokens of a text, and the position in them."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _TOKENS.findall(text)
        self._position = 0
        self._depth = 0

    @property
    def _has_next(self) -> bool:
        return self._position < len(self._tokens)

    def _next(self) -> str:
        self._position += 1
        token: str = self._tokens[self._position - 1]
        return token

    def _consume(self, expected: str) -> bool:
        """Go behind the next token that is not blank if it is `expected`."""
        while self._position < len(self._tokens) - 1 and not self._tokens[self._position].strip():
            self._position += 1
        if self._has_next and self._tokens[self._position].strip() == expected:
            self._position += 1
            return True
        return False

    def parse(self, embedded: bool = False) -> SchemaValue:
        """Return the next value; `embedded` is one in an array or map. Raises DataError if that is none."""
        if not self._has_next:
            return None, None
        if embedded and self._consume('"'):
            return self._quoted()
        for word, constant in _CONSTANTS.items():
            start = self._position
            if self._consume(word) and (embedded or not self._has_next):
                return constant
            self._position = start
        start = self._position
        try:
            if self._consume("["):
                return self._nested(self._array)
            if self._consume("{"):
                return self._nested(self._map)
        except DataError:
            self._position = start
        token = self._next()
        if not token.strip():
            return s.string(), token
        return self._scalar(token.strip(), embedded)

    def _nested(self, parse: Callable[[], SchemaValue]) -> SchemaValue:
        if self._depth >= _DEEPEST:
            raise DataError(f"arrays and maps nest deeper than {_DEEPEST}")
        self._depth += 1
        try:
            return parse()
        finally:
            self._depth -= 1

    def _scalar(self, token: str, embedded: bool) -> SchemaValue:
        """Return the date, time or number that begins with a token; otherwise the whole text."""
        if token[0].isdigit():
            following = self._tokens[self._position : self._position + 4]
            parsed = _temporal(token + "".join(following)) if len(following) == 4 else None
            if parsed is not None:
                self._position += 4
                return parsed
            parsed = _temporal(token)
            if parsed is not None:
                return parsed
        if token[0].isdigit() or token[0] in "+-":
            try:
                return _number(token)
            except ValueError:
                pass
        if embedded:
            raise DataError(f"{token!r:.100} is no value of an array or map")
        return s.string(), self._text

    def _quoted(self) -> SchemaValue:
        parts = []
        while self._has_next and not self._consume('"'):
            parts.append(self._next())
        content = "".join(parts)
        return _temporal(content) or (s.string(), content)

    def _array(self) -> SchemaValue:
        items: list[SchemaValue] = []
        while self._has_next:
            if self._consume("]"):
                schema = _common([schema for schema, _ in items])
                values = [value for _, value in items]
                if schema is not None:
                    values = [_aligned(value, schema) for value in values]
                return Schema(type=Type.ARRAY, values=schema), values
            if self._consume(","):
                raise DataError("an item of an array is empty")
            items.append(self.parse(embedded=True))
            start = self._position
            if self._consume("]"):
                self._position = start
            elif not self._consume(","):
                raise DataError("items of an array need a comma between them")
        raise DataError("an array is not closed")

    def _map(self) -> SchemaValue:
        entries: list[tuple[SchemaValue, SchemaValue]] = []
        while self._has_next:
            if self._consume("}"):
                return _map_of(entries)
            if self._consume(","):
                raise DataError("an entry of a map is empty")
            key = self.parse(embedded=True)
            if key[1] is None or isinstance(key[1], (list, dict)) or not self._consume(":"):
                raise DataError("an entry of a map needs a key and a colon")
            entries.append((key, self.parse(embedded=True)))
            self._consume(",")
        raise DataError("a map is not closed")


def _map_of(entries: list[tuple[SchemaValue, SchemaValue]]) -> SchemaValue:
    keys = _common([schema for (schema, _), _ in entries])
    values = _common([schema for _, (schema, _) in entries]) if keys is not None else None
    result = {}
    for (_, key), (_, value) in entries:
        name = key if keys is None else _aligned(key, keys)
        result[name] = value if values is None else _aligned(value, values)
    return Schema(type=Type.MAP, keys=keys, values=values), result


def _common(schemas: list[Schema | None]) -> Schema | None:
    """Return the schema that all values fit: of numbers the widest; None if there is none."""
    common: Schema | None = None
    for schema in schemas:
        if schema is None:
            continue
        if common is None or common.type is schema.type:
            common = schema
        elif common.type in _ORDER and schema.type in _ORDER:
            common = max(common, schema, key=lambda s: _ORDER.index(s.type))
        else:
            return None
    return common


def _aligned(value: Any, schema: Schema) -> Any:
    """Return the value as the common schema's type. Raises DataError if it does not fit."""
    if schema.type in (Type.FLOAT32, Type.FLOAT64) and isinstance(value, int):
        return as_float32(value) if schema.type is Type.FLOAT32 else float(value)
    if not isinstance(value, (list, dict)):
        schema.check(value)
    return value


def _temporal(text: str) -> SchemaValue | None:
    """Return the date, time or timestamp of a text of the length of one; otherwise None."""
    text = text.replace("\\:", ":")
    parsers: dict[int, tuple[Schema, Callable[[str], Any]]] = {
        10: (s.date(), parse_date),
        13: (s.time(), parse_time),
        24: (s.timestamp(), parse_timestamp),
    }
    if len(text) not in parsers:
        return None
    schema, parse = parsers[len(text)]
    try:
        return schema, parse(text)
    except (ValueError, DataError):
        return None


def _number(text: str) -> SchemaValue:
    """Return the number with the smallest type that holds it. Raises ValueError if the text is no number."""
    number = parse_decimal(text)
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    if number.adjusted() < 20 and number == number.to_integral_value() and (abs(number) >= 1 or not number):
        whole = int(number)
        for bits, schema in _INTS:
            if wrapped(whole, bits) == whole:
                return schema, whole
    if exponent and abs(as_float32(float(number))) != float("inf"):
        return s.float32(), as_float32(float(number))
    if exponent and abs(float(number)) != float("inf"):
        return s.float64(), float(number)
    return s.decimal_(-exponent), number
