"""Positions of a source in a table, and their form as source offsets."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any, NamedTuple

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_SECOND = dt.timedelta(seconds=1)


class Position(NamedTuple):
    """The last row read: its time in UTC and its id, each None where the mode has none."""

    time: dt.datetime | None = None
    id: int | None = None

    def offset(self) -> dict[str, int]:
        """Return the source offset, by the names of Confluent's connector."""
        offset: dict[str, int] = {}
        if self.id is not None:
            offset["incrementing"] = self.id
        if self.time is not None:
            seconds, rest = divmod(self.time - EPOCH, _SECOND)
            offset["timestamp"] = seconds * 1000 + rest.microseconds // 1000
            offset["timestamp_nanos"] = rest.microseconds * 1000
        return offset

    @classmethod
    def of_offset(cls, offset: Mapping[str, Any]) -> Position:
        """Return the position of a source offset."""
        time = None
        if offset.get("timestamp") is not None:
            ms = int(offset["timestamp"])
            nanos = int(offset.get("timestamp_nanos", ms % 1000 * 1_000_000))
            time = EPOCH + dt.timedelta(seconds=ms // 1000, microseconds=nanos // 1000)
        number = offset.get("incrementing")
        return cls(time, None if number is None else int(number))


def floor(time: dt.datetime, digits: int) -> dt.datetime:
    """Return the time cut to `digits` of the second."""
    unit: int = 10 ** (6 - min(6, max(0, digits)))
    return time.replace(microsecond=time.microsecond // unit * unit)
