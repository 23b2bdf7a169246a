"""Parses dates as Java's SimpleDateFormat does, lenient and in UTC.

Month 13 is January of the next year, numbers may be longer than in the pattern, and text behind the pattern
is ignored.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import dataclass

MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_NUMBER = re.compile(r"-?\d+")
_ZONE_NUMBER = re.compile(r"([+-])(\d\d?):?(\d\d)")
_ZONE_NAME = re.compile(r"(?:UTC|GMT|UT|Coordinated Universal Time)(?:([+-])(\d\d?):(\d\d))?", re.IGNORECASE)
_ISO_ZONES = {
    1: re.compile(r"([+-])(\d\d)()"),
    2: re.compile(r"([+-])(\d\d)(\d\d)"),
    3: re.compile(r"([+-])(\d\d):(\d\d)"),
}
_LONGEST = 18
"""How many digits a number may have; with more the date is out of range anyway."""


@dataclass(frozen=True, slots=True)
class Part:
    """A field of a pattern, or a literal text."""

    letter: str
    """The pattern letter; empty for a literal."""
    count: int
    text: str
    """The literal."""

    @property
    def is_number(self) -> bool:
        """True if the field is parsed as a number."""
        return self.letter in "yduDHkKhmsS" if self.letter not in "ML" else self.count < 3


class _Fields:
    """The values of the fields in a text."""

    def __init__(self) -> None:
        self.year, self.month, self.day = 1970, 0, 1
        self.day_of_year: int | None = None
        self.hour, self.half_day, self.is_half = 0, 0, False
        self.minute = self.second = self.millisecond = self.offset = 0

    def millis(self) -> int | None:
        """Return the ms since the epoch; None outside the years 1 to 9999."""
        years, month = (0, 0) if self.day_of_year is not None else divmod(self.month, 12)
        day = self.day if self.day_of_year is None else self.day_of_year
        hour = self.hour + 12 * self.half_day if self.is_half else self.hour
        try:
            first = dt.date(self.year + years, month + 1, 1)
        except (ValueError, OverflowError):
            return None
        days = first.toordinal() - dt.date(1970, 1, 1).toordinal() + day - 1
        minutes = (days * 24 + hour) * 60 + self.minute - self.offset
        return (minutes * 60 + self.second) * 1000 + self.millisecond


def parse_parts(parts: Sequence[Part], text: str, century_start: int) -> int | None:
    """Return the ms since the epoch of a text that a pattern's parts describe; None if it does not match.

    A year of two digits is the first from `century_start` on that ends so.
    """
    fields, position = _Fields(), 0
    for i, part in enumerate(parts):
        if not part.letter:
            if not text.startswith(part.text, position):
                return None
            position += len(part.text)
            continue
        start = position
        while text[position : position + 1] in (" ", "\t"):
            position += 1
        if part.is_number:
            abuts = i + 1 < len(parts) and bool(parts[i + 1].letter) and parts[i + 1].is_number
            end = start + part.count if abuts else len(text)
            match = _NUMBER.match(text, position, end) if end <= len(text) else None
            if match is None or len(match[0]) > _LONGEST:
                return None
            _set_number(fields, part, match[0], century_start)
            after: int | None = match.end()
        else:
            after = _set_text(fields, part, text, position)
        if after is None:
            return None
        position = after
    return fields.millis()


def _set_number(fields: _Fields, part: Part, digits: str, century_start: int) -> None:
    """Set the field of a numeric part."""
    value = int(digits)
    match part.letter:
        case "y":
            if part.count <= 2 and len(digits) == 2 and digits.isdigit():
                value += century_start // 100 * 100
                value += 100 if value < century_start else 0
            fields.year = value
        case "M" | "L":
            fields.month, fields.day_of_year = value - 1, None
        case "d":
            fields.day, fields.day_of_year = value, None
        case "D":
            fields.day_of_year = value
        case "H" | "k":
            fields.hour, fields.is_half = 0 if part.letter == "k" and value == 24 else value, False
        case "K" | "h":
            fields.hour, fields.is_half = 0 if part.letter == "h" and value == 12 else value, True
        case "m":
            fields.minute = value
        case "s":
            fields.second = value
        case "S":
            fields.millisecond = value


def _set_text(fields: _Fields, part: Part, text: str, position: int) -> int | None:
    """Set the field of a part with names or a zone. Return the position behind it, or None."""
    if part.letter in "zZX":
        return _set_zone(fields, part, text, position)
    names = {"M": MONTHS, "L": MONTHS, "E": DAYS}.get(part.letter, ("AM", "PM"))
    lower = text[position : position + 10].lower()
    for length in (None, 3):
        for i, name in enumerate(names):
            prefix = name[:length].lower()
            if lower.startswith(prefix):
                if part.letter in "ML":
                    fields.month, fields.day_of_year = i, None
                elif part.letter == "a":
                    fields.half_day = i
                return position + len(prefix)
    return None


def _set_zone(fields: _Fields, part: Part, text: str, position: int) -> int | None:
    """Set the offset from UTC, in minutes. Return the position behind the zone, or None."""
    if part.letter == "X":
        if text[position : position + 1] == "Z":
            return position + 1
        match = _ISO_ZONES[part.count].match(text, position)
    else:
        match = _ZONE_NUMBER.match(text, position) or _ZONE_NAME.match(text, position)
    if match is None:
        return None
    sign, hours, minutes = match.groups()
    if sign:
        fields.offset = (int(hours) * 60 + int(minutes or 0)) * (1 if sign == "+" else -1)
    return match.end()
