"""Computes a record's timestamp from its fields.

timestamp.constant=0                         every record
timestamp.field=time_hour                    one field: ISO date or datetime, or ms since the epoch
timestamp.field={year}-{month}-{day}         a template; a date is UTC midnight
timestamp.field=year,month,day               the same
timestamp.format=%d.%m.%Y                    instead of ISO; also epoch_s
"""

from __future__ import annotations

import datetime as dt
import math
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

from connect.api import ConfigError, DataError
from plugins.files.row_config import RowSettings

_KNOWN_MAX = 100_000
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MS = dt.timedelta(milliseconds=1)
_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(.*)", re.ASCII | re.DOTALL)
_PLACE = re.compile(r"{([^{}]+)}")

Stamp = Callable[[Sequence[Any]], Sequence[int | None]]
"""A function from a batch of values to timestamps, ms since the epoch; None is the time of sending."""


def timestamp_rule(config: RowSettings) -> Stamp:
    """Return the function for the configured timestamps. Raises ConfigError if no field is named."""
    if config.timestamp_constant is not None:
        constant = config.timestamp_constant
        return lambda values: [constant] * len(values)
    if config.timestamp_field is None:
        return lambda values: [None] * len(values)
    template = config.timestamp_field
    if "{" not in template:
        template = "-".join(f"{{{name.strip()}}}" for name in template.split(","))
    fields = _PLACE.findall(template)
    if not fields:
        raise ConfigError("timestamp.field", config.timestamp_field, "must name a field")
    return _Times(_PLACE.sub("{}", template), fields, _parser(config.timestamp_format)).of


class _Times(dict[Any, int]):
    """A cache of timestamps by the values of their fields, since rows of one day share a timestamp."""

    def __init__(self, template: str, fields: list[str], parse: Callable[[str], int]) -> None:
        super().__init__()
        self._template = template
        self._fields = fields
        self._parse = parse
        self._pick = operator.itemgetter(*fields)

    def of(self, values: Sequence[Any]) -> list[int | None]:
        """Return the timestamps of a batch of dicts. Raises DataError if a record has no valid timestamp."""
        if len(self) > _KNOWN_MAX:
            self.clear()
        try:
            return list(map(self.__getitem__, map(self._pick, values)))
        except (KeyError, TypeError) as e:
            raise DataError(
                f"a record lacks {' or '.join(self._fields)}, named by timestamp.field: {e}"
            ) from e

    def __missing__(self, picked: Any) -> int:
        parts = picked if len(self._fields) > 1 else (picked,)
        if None in parts:
            raise DataError(f"{', '.join(self._fields)}: null where the record's time should be")
        text = self._template.format(*parts)
        try:
            time = self[picked] = self._parse(text)
        except (ValueError, OverflowError) as e:
            raise DataError(f"{text!r} is no time: {e}") from e
        return time


def _parser(format: str) -> Callable[[str], int]:
    match format:
        case "auto":
            return _iso_or_ms
        case "epoch_ms":
            return int
        case "epoch_s":
            return lambda text: math.floor(float(text) * 1000)
        case _:
            return lambda text: _to_ms(dt.datetime.strptime(text, format))


def _iso_or_ms(text: str) -> int:
    match = _DATE.fullmatch(text)
    if match is None:
        return int(text)
    year, month, day, rest = match.groups()
    return _to_ms(dt.datetime.fromisoformat(f"{year}-{int(month):02}-{int(day):02}{rest}"))


def _to_ms(time: dt.datetime) -> int:
    if time.tzinfo is None:
        time = time.replace(tzinfo=dt.UTC)
    return (time - _EPOCH) // _MS
