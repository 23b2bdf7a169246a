"""Times and durations as Java reads them."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

from millstream.kafka_tools.java.java_errors import JavaError

_TIME = re.compile(
    r"(?P<year>\d+)-(?P<month>\d+)-(?P<day>\d+)T(?P<hour>\d+):(?P<minute>\d+):(?P<second>\d+)\.(?P<ms>\d+)"
    r"(?P<zone>Z|(?P<sign>[+-])(?P<zone_hour>\d\d)(:?(?P<zone_minute>\d\d))?)"
)
_DURATION = re.compile(
    r"(?P<sign>[+-]?)P(?:(?P<days>[+-]?\d+)D)?"
    r"(?P<time>T(?:(?P<hours>[+-]?\d+)H)?(?:(?P<minutes>[+-]?\d+)M)?(?:(?P<seconds>[+-]?\d+(?:[.,]\d{0,9})?)S)?)?",
    re.IGNORECASE,
)


def date_time_ms(text: str) -> int:
    """Return ms since 1970 of YYYY-MM-DDThh:mm:ss.sss, UTC without a zone, as Kafka's Utils.getDateTime."""
    parts = text.split("T")
    if len(parts) < 2:
        raise _unparsed("Error parsing timestamp. It does not contain a 'T' according to ISO8601 format")
    if not set(parts[1]) & set("+-Z"):
        text += "Z"
    if (match := _TIME.match(text)) is None:
        raise _unparsed(f'Unparseable date: "{text}"')
    numbers = {key: int(match[key]) for key in ("year", "month", "day", "hour", "minute", "second")}
    away = timedelta(hours=int(match["zone_hour"] or 0), minutes=int(match["zone_minute"] or 0))
    try:
        moment = datetime(**numbers, tzinfo=timezone(-away if match["sign"] == "-" else away))
    except ValueError:
        raise _unparsed(f'Unparseable date: "{text}"') from None
    return round(moment.timestamp() * 1000) + int(match["ms"])


def duration_ms(text: str) -> int:
    """Return the ms of an ISO 8601 duration, as Duration.parse reads it."""
    match = _DURATION.fullmatch(text)
    names = ("days", "hours", "minutes", "seconds")
    if match is None or match["time"] in ("T", "t") or not any(match[name] for name in names):
        raise JavaError("java.time.format.DateTimeParseException", "Text cannot be parsed to a Duration")
    parts = {name: float((match[name] or "0").replace(",", ".")) for name in names}
    value = round(timedelta(**parts).total_seconds() * 1000)
    return -value if match["sign"] == "-" else value


def _unparsed(message: str) -> JavaError:
    return JavaError("java.lang.RuntimeException", f"java.text.ParseException: {message}")
