"""Points in time and durations, as Kafka's tools write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from millstream.terminal.status import UsageError

_DURATION = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?"
)


def timestamp_ms(text: str, option: str) -> int:
    """Return the ms since 1970 of an ISO 8601 time, UTC without an offset; 0 for earlier times.

    Raises UsageError.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{option} {text}: a time is as 2013-01-31T12:00:00, with Z or +01:00") from None
    return max(round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000), 0)


def duration_ms(text: str, option: str) -> int:
    """Return the ms of an ISO 8601 duration of days, hours, minutes and seconds. Raises UsageError."""
    match = _DURATION.fullmatch(text)
    parts = {} if match is None else {k: float(v) for k, v in match.groupdict().items() if v is not None}
    if not parts:
        raise UsageError(f"{option} {text}: a duration is written P1DT2H30M, PT15M or PT10S")
    return round(timedelta(**parts).total_seconds() * 1000)
