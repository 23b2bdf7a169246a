"""The value that a text means, by the rules of Kafka's `Values.parseString`: types are inferred.

    5        the narrowest integer: int8, int16, int32 or int64; beyond, a decimal
    0.1      float, double or decimal: the first that holds it
    2019-01-01   10:11:12.345Z   2019-01-01T10:11:12.345Z      a date, a time, a timestamp
    [1,"a"]  {"a":true}          an array, a map; items of one type, or of no schema
    null  true  false            anything else is a string, and is the whole text

As in Kafka, text after the first number, array or map is not looked at, and blanks before a closing quote are
lost.
"""

from __future__ import annotations

import datetime as dt
import decimal
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from connect.api import schema as s
from connect.api.schema import Schema, Type
from connect.converters.value_merging import aligned, merged
from connect.converters.value_texts import shortest_single, single
from connect.errors import DataError


class Parsed(NamedTuple):
    """A value with its inferred schema, None for a null."""

    schema: Schema | None
    value: Any


_TOKEN = re.compile(r'[:,{}\[\]"]|(?:\\(?:[\s\S]|$)|[^\\:,{}\[\]"])+')
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,9})?")
_BLANKS = "".join(map(chr, range(33)))
_DATE = r"\s*(-?\d+)-\s*(-?\d+)-\s*(-?\d+)"
_TIME = r"\s*(-?\d+):\s*(-?\d+):\s*(-?\d+)\.\s*(-?\d+)Z"
_TEMPORALS = {
    10: (re.compile(_DATE), s.date()),
    13: (re.compile(_TIME), s.time()),
    24: (re.compile(f"{_DATE}T{_TIME}"), s.timestamp()),
}
"""Length of the text -> its pattern and schema. As Java's formats, they take fields beyond their range."""
_STRING, _NULL = s.string(), Parsed(None, None)
_LITERALS = {"null": _NULL, "true": Parsed(s.boolean(), True), "false": Parsed(s.boolean(), False)}
_INTEGERS = ((8, s.int8()), (16, s.int16()), (32, s.int32()), (64, s.int64()))
_FLOAT32, _FLOAT64 = s.float32(), s.float64()
_DEPTH_MAX = 100
"""The most arrays and maps within each other; a text that has more is a string."""


def parse_text(text: str) -> Parsed:
    """Return the value that a text means. Never fails: a text that means nothing else is a string."""
    return _Parser(text).parse() if text else Parsed(_STRING, text)


class _Parser:
    """The tokens of one text, and the next one's index."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _TOKEN.findall(text)
        self._next = 0

    def parse(self, depth: int = 0) -> Parsed:
        """Return the next value. Raises DataError if there is none within an array or map."""
        if depth > _DEPTH_MAX:
            raise DataError(f"more than {_DEPTH_MAX} arrays and maps within each other")
        if depth and self._take('"'):
            return self._quoted()
        start = self._next
        for literal, parsed in _LITERALS.items():
            if self._take(literal) and (depth or not self._has_more):
                return parsed
            self._next = start
        try:
            if self._take("["):
                return self._array(depth + 1)
            if self._take("{"):
                return self._map(depth + 1)
        except DataError:
            self._next = start
        return self._single(is_embedded=depth > 0)

    @property
    def _has_more(self) -> bool:
        return self._next < len(self._tokens)

    def _take(self, expected: str) -> bool:
        """Step over blank tokens, and over the next one if it is `expected`; return True if it is."""
        tokens, last = self._tokens, len(self._tokens) - 1
        while self._next < last and not tokens[self._next].strip(_BLANKS):
            self._next += 1
        is_next = self._has_more and tokens[self._next].strip(_BLANKS) == expected
        self._next += is_next
        return is_next

    def _take_token(self) -> str:
        if not self._has_more:
            raise DataError("the text ends where a value is expected")
        self._next += 1
        return str(self._tokens[self._next - 1])

    def _quoted(self) -> Parsed:
        """Return the string up to the next quote, or the date or time that it means."""
        parts = []
        while self._has_more and not self._take('"'):
            parts.append(self._take_token())
        content = "".join(parts)
        if content.strip(_BLANKS)[:1].isdecimal():
            parsed = parse_text(content)
            if parsed.schema is not None and parsed.schema.name in (s.DATE, s.TIME, s.TIMESTAMP):
                return parsed
        return Parsed(_STRING, content)

    def _array(self, depth: int) -> Parsed:
        items: list[Parsed] = []
        while self._has_more:
            if self._take("]"):
                of = merged([item.schema for item in items if item is not _NULL])
                values = [item.value for item in items]
                if of is not None:
                    values = [aligned(of, value) for value in values]
                return Parsed(Schema(type=Type.ARRAY, values=of), values)
            if self._take(","):
                raise DataError("an item is missing")
            items.append(self.parse(depth))
            here = self._next
            if self._take("]"):
                self._next = here
            elif not self._take(","):
                raise DataError("a comma is missing between two items")
        raise DataError("the array has no end")

    def _map(self, depth: int) -> Parsed:
        entries: dict[Any, Any] = {}
        keys: list[Schema | None] = []
        values: list[Schema | None] = []
        while self._has_more:
            if self._take("}"):
                return _map_of(merged(keys), merged(values), entries)
            if self._take(","):
                raise DataError("an entry is missing")
            key = self.parse(depth)
            if key.value is None or isinstance(key.value, (list, dict)):
                raise DataError("a key is null, or no single value")
            if not self._take(":"):
                raise DataError("a colon is missing in an entry")
            item = self.parse(depth)
            entries[key.value] = item.value
            keys.append(key.schema)
            if item is not _NULL:
                values.append(item.schema)
            self._take(",")
        raise DataError("the map has no end")

    def _single(self, *, is_embedded: bool) -> Parsed:
        """Return the date, time or number of the next token, else the whole text."""
        whole = self._take_token()
        token = whole.strip(_BLANKS)
        if not token:
            return Parsed(_STRING, whole)
        if token[0].isdecimal():
            rest = self._tokens[self._next : self._next + 4]
            if len(rest) == 4 and (parsed := _temporal(token + "".join(rest))):
                self._next += 4
                return parsed
            if parsed := _temporal(token):
                return parsed
        if (token[0].isdecimal() or token[0] in "+-") and _NUMBER.fullmatch(token):
            return _number(token)
        if is_embedded:
            raise DataError(f"{token!r} within an array or map needs quotes")
        return Parsed(_STRING, self._text)


def _map_of(keys: Schema | None, values: Schema | None, entries: Mapping[Any, Any]) -> Parsed:
    if keys is None:  # then there is none of the values either, as in Kafka
        return Parsed(Schema(type=Type.MAP), dict(entries))
    fitted = {
        aligned(keys, key): item if values is None else aligned(values, item) for key, item in entries.items()
    }
    return Parsed(Schema(type=Type.MAP, keys=keys, values=values), fitted)


def _number(token: str) -> Parsed:
    exact = decimal.Decimal(token)
    if exact.adjusted() <= 18 and exact == exact.to_integral_value():
        whole = int(exact)
        for bits, schema in _INTEGERS:
            if -(1 << bits - 1) <= whole < 1 << bits - 1:
                return Parsed(schema, whole)
    exponent = int(exact.as_tuple().exponent)
    if exponent != 0:
        double = float(exact)
        narrow = single(double)
        if abs(narrow) != float("inf"):
            return Parsed(_FLOAT32, shortest_single(narrow))
        if abs(double) != float("inf"):
            return Parsed(_FLOAT64, double)
    return Parsed(s.decimal_(-exponent), exact)


def _temporal(text: str) -> Parsed | None:
    """Return the date, time or timestamp that a text means, or None."""
    text = text.replace("\\:", ":")
    pattern, schema = _TEMPORALS.get(len(text), (None, None))
    match = pattern.match(text) if pattern else None
    if match is None or schema is None:
        return None
    numbers = [int(group) for group in match.groups()]
    try:
        day = _day(*numbers[:3]) if schema.name != s.TIME else dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
        if schema.name == s.DATE:
            return Parsed(schema, day.date())
        hours, minutes, seconds, ms = numbers[-4:]
        at = day + dt.timedelta(hours=hours, minutes=minutes, seconds=seconds, milliseconds=ms)
    except (ValueError, OverflowError):
        return None
    return Parsed(schema, at.time() if schema.name == s.TIME else at)


def _day(year: int, month: int, day: int) -> dt.datetime:
    """Return the day's begin. Months beyond 12 and days beyond their month count on, as in Java."""
    first = dt.datetime(year + (month - 1) // 12, (month - 1) % 12 + 1, 1, tzinfo=dt.UTC)
    return first + dt.timedelta(days=day - 1)
