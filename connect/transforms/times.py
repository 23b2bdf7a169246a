"""Dates and times as milliseconds since the epoch, Java's Date, and back."""

from __future__ import annotations

import datetime as dt
from typing import Any

from connect.errors import DataError
from connect.transforms.date_format import DateFormat

MILLIS_PER_DAY = 86_400_000
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_NAIVE_EPOCH = dt.datetime(1970, 1, 1)
_EPOCH_DAY = _EPOCH.toordinal()
_MILLISECOND = dt.timedelta(milliseconds=1)
_TIME = DateFormat("HH:mm:ss.SSS'Z'")
_DATE = DateFormat("yyyy-MM-dd")
_TIMESTAMP = DateFormat("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'")


def to_millis(value: Any) -> int:
    """Return the milliseconds of a datetime, of the beginning of a date, or of a time of the first day.

    A datetime without time zone is in UTC. Raises DataError for a value of another type.
    """
    if isinstance(value, dt.datetime):
        return (value - (_NAIVE_EPOCH if value.tzinfo is None else _EPOCH)) // _MILLISECOND
    if isinstance(value, dt.date):
        return (value.toordinal() - _EPOCH_DAY) * MILLIS_PER_DAY
    if isinstance(value, dt.time):
        seconds = (value.hour * 60 + value.minute) * 60 + value.second
        return seconds * 1000 + value.microsecond // 1000
    raise DataError(f"{type(value).__name__} is no date or time")


def to_datetime(millis: int) -> dt.datetime:
    """Return the datetime, in UTC. Raises DataError outside the years 1 to 9999."""
    try:
        return _EPOCH + dt.timedelta(milliseconds=millis)
    except OverflowError as e:
        raise DataError(f"{millis} ms since the epoch is outside the years 1 to 9999") from e


def date_text(millis: int) -> str:
    """Return the text of Java's Values.dateFormatFor: a time on the first day, a date at midnight."""
    if millis < MILLIS_PER_DAY:
        return _TIME.format(millis)
    return (_TIMESTAMP if millis % MILLIS_PER_DAY else _DATE).format(millis)


def parse_time(text: str) -> dt.time:
    """Return the time of a text as 12:00:00.000Z. Raises ValueError."""
    return to_datetime(_TIME.parse(text) % MILLIS_PER_DAY).time()


def parse_date(text: str) -> dt.date:
    """Return the date of a text as 2024-01-31. Raises ValueError."""
    return to_datetime(_DATE.parse(text)).date()


def parse_timestamp(text: str) -> dt.datetime:
    """Return the datetime of a text as 2024-01-31T12:00:00.000Z. Raises ValueError."""
    return to_datetime(_TIMESTAMP.parse(text))
