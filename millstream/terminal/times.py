"""Points in time and durations, as Kafka's tools write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from millstream.terminal.status import UsageError

_DURATION = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?"
)


def timestamp_ms(text: str, option: str) -> int:
    """The ms since 1970 of an ISO 8601 time, which is UTC if it says nothing else; 0 for what is before."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{option} {text}: a time is as 2013-01-31T12:00:00, with Z or +01:00") from None
    return max(round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000), 0)


def duration_ms(text: str, option: str) -> int:
    """The ms of an ISO 8601 duration of days, hours, minutes and seconds."""
    found = _DURATION.fullmatch(text)
    parts = {} if found is None else {k: float(v) for k, v in found.groupdict().items() if v is not None}
    if not parts:
        raise UsageError(f"{option} {text}: a duration is written P1DT2H30M, PT15M or PT10S")
    return round(timedelta(**parts).total_seconds() * 1000)
