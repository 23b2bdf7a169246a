"""Formats dates by patterns of Java's SimpleDateFormat, in UTC and with English names.

The calendar is Gregorian also before 1582, where Java changes to the Julian one.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

from connect.transforms.date_parsing import DAYS, MONTHS, Part, parse_parts

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_Write = Callable[[dt.datetime], str]
_UNITS = {"S": 1, "s": 1000, "m": 60_000, **dict.fromkeys("HkKha", 3_600_000)}
_LETTERS = "yMLdDEuaHkKhmsSzZX"


def _numeric(read: Callable[[dt.datetime], int], count: int) -> _Write:
    return lambda date: str(read(date)).zfill(count)


_NUMBERS: dict[str, Callable[[dt.datetime], int]] = {
    "d": lambda date: date.day,
    "D": lambda date: date.timetuple().tm_yday,
    "u": lambda date: date.isoweekday(),
    "H": lambda date: date.hour,
    "k": lambda date: date.hour or 24,
    "K": lambda date: date.hour % 12,
    "h": lambda date: date.hour % 12 or 12,
    "m": lambda date: date.minute,
    "s": lambda date: date.second,
    "S": lambda date: date.microsecond // 1000,
}


def _writer(part: Part) -> _Write:
    """Return the function that writes one part of a pattern."""
    letter, count = part.letter, part.count
    if not letter:
        return lambda date: part.text
    if letter in _NUMBERS:
        return _numeric(_NUMBERS[letter], count)
    if letter == "y":
        return (lambda date: f"{date.year % 100:02}") if count == 2 else _numeric(lambda d: d.year, count)
    if letter in "ML":
        if count < 3:
            return _numeric(lambda date: date.month, count)
        return lambda date: MONTHS[date.month - 1] if count > 3 else MONTHS[date.month - 1][:3]
    if letter == "E":
        return lambda date: DAYS[date.weekday()] if count > 3 else DAYS[date.weekday()][:3]
    if letter == "a":
        return lambda date: "AM" if date.hour < 12 else "PM"
    zone = {"z": "UTC" if count < 4 else "Coordinated Universal Time", "Z": "+0000", "X": "Z"}[letter]
    return lambda date: zone


class DateFormat:
    """A compiled pattern; its letters may be y, M, L, d, D, E, u, a, H, k, K, h, m, s, S, z, Z and X."""

    def __init__(self, pattern: str, *, now: Callable[[], dt.datetime] | None = None) -> None:
        """Compile the pattern. Raises ValueError if a letter in it is not supported, or a quote is open.

        `now` says in which century a year of two digits is: from 80 years before to 20 years after.
        """
        self.pattern = pattern
        self._parts = _split(pattern)
        self._writers = [_writer(part) for part in self._parts]
        self._unit = min((_UNITS.get(part.letter, 86_400_000) for part in self._parts), default=86_400_000)
        self._latest = (-1, "")
        self._has_latest = False
        today = dt.datetime.now(dt.UTC) if now is None else now()
        self._century_start = today.year - 80

    def format(self, millis: int) -> str:
        """Return the text of a date in ms since the epoch. Raises ValueError outside the years 1 to 9999."""
        unit = millis // self._unit
        if self._has_latest and self._latest[0] == unit:
            return self._latest[1]
        try:
            date = _EPOCH + dt.timedelta(milliseconds=millis)
        except OverflowError as e:
            raise ValueError(f"{millis} ms since the epoch is outside the years 1 to 9999") from e
        text = "".join([write(date) for write in self._writers])
        self._latest, self._has_latest = (unit, text), True
        return text

    def parse(self, text: str) -> int:
        """Return the ms since the epoch of a text. Raises ValueError if it does not match the pattern."""
        millis = parse_parts(self._parts, text, self._century_start)
        if millis is None:
            raise ValueError(f"{text!r:.100} does not match the pattern {self.pattern!r}")
        return millis


def _split(pattern: str) -> list[Part]:
    """Return the parts of a pattern. Raises ValueError."""
    parts: list[Part] = []
    position = 0
    while position < len(pattern):
        letter = pattern[position]
        if letter == "'":
            text, position = _quoted(pattern, position)
            parts.append(Part("", 0, text))
        elif letter.isascii() and letter.isalpha():
            if letter not in _LETTERS:
                raise ValueError(f"the pattern letter {letter!r} is not supported; letters are {_LETTERS}")
            count = len(pattern) - position - len(pattern[position:].lstrip(letter))
            if letter == "X" and count > 3:
                raise ValueError("the pattern letter X is allowed at most three times in a row")
            parts.append(Part(letter, count, ""))
            position += count
        else:
            parts.append(Part("", 0, letter))
            position += 1
    return parts


def _quoted(pattern: str, start: int) -> tuple[str, int]:
    """Return the text in quotes, and the position behind it; two quotes are one quote."""
    if pattern.startswith("''", start):
        return "'", start + 2
    text, position = "", start + 1
    while position < len(pattern):
        if pattern.startswith("''", position):
            text, position = text + "'", position + 2
        elif pattern[position] == "'":
            return text, position + 1
        else:
            text, position = text + pattern[position], position + 1
    raise ValueError("a quote in the pattern is not closed")
