"""Times by a pattern of java.text.SimpleDateFormat."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import TypeAlias

from millstream.kafka_tools.java.java_errors import illegal_argument

Part: TypeAlias = str | Callable[[datetime], str]

_PARTS = re.compile(r"'((?:[^']|'')*)'|([a-zA-Z])\2*|[^a-zA-Z']+")
_LETTERS: dict[str, Callable[[datetime, int], str]] = {
    "y": lambda at, width: f"{at.year % 100:02}" if width == 2 else str(at.year).zfill(width),
    "M": lambda at, width: (
        at.strftime("%B" if width > 3 else "%b") if width > 2 else str(at.month).zfill(width)
    ),
    "d": lambda at, width: str(at.day).zfill(width),
    "D": lambda at, width: str(at.timetuple().tm_yday).zfill(width),
    "E": lambda at, width: at.strftime("%A" if width > 3 else "%a"),
    "H": lambda at, width: str(at.hour).zfill(width),
    "k": lambda at, width: str(at.hour or 24).zfill(width),
    "h": lambda at, width: str(at.hour % 12 or 12).zfill(width),
    "K": lambda at, width: str(at.hour % 12).zfill(width),
    "a": lambda at, width: "AM" if at.hour < 12 else "PM",
    "m": lambda at, width: str(at.minute).zfill(width),
    "s": lambda at, width: str(at.second).zfill(width),
    "S": lambda at, width: str(at.microsecond // 1000).zfill(width),
    "z": lambda at, width: at.tzname() or "",
    "Z": lambda at, width: at.strftime("%z"),
}


def date_pattern(pattern: str) -> list[Part]:
    """Return the parts of a pattern. Raises JavaError (IllegalArgumentException) for an unknown letter."""
    parts: list[Part] = []
    for part in _PARTS.finditer(pattern):
        if part[1] is not None:
            parts.append(part[1].replace("''", "'") or "'")
        elif part[2] is None:
            parts.append(part[0])
        elif part[2] in _LETTERS:
            parts.append(_letter(part[2], len(part[0])))
        else:
            raise illegal_argument(f"Illegal pattern character '{part[2]}'")
    return parts


def formatted(seconds: float, parts: list[Part]) -> str:
    """Format a time, in seconds since 1970, in the local time zone."""
    at = datetime.fromtimestamp(seconds).astimezone()
    return "".join(part if isinstance(part, str) else part(at) for part in parts)


def _letter(letter: str, width: int) -> Part:
    show = _LETTERS[letter]
    return lambda at: show(at, width)
