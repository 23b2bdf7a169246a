"""The N greatest, or smallest, values of a key: lists in order of rank, the best first.

Among equals the first to arrive is in front; of merged sessions, the earlier session's. An update of a table
removes rows, so all of the table's rows are kept: a row after the Nth may move to the front again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import gt, lt
from typing import Any

from streams.processors.aggregates.aggregate import Aggregation
from streams.processors.aggregates.grouped_table import of_changes

Rows = list[Any]


def _itself(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class Ranking:
    """An order of values by ``by(value)``, which is the value itself by default."""

    by: Callable[[Any], Any] = _itself
    smallest: bool = False

    @classmethod
    def of(cls, by: Callable[[Any], Any] | None, *, smallest: bool) -> Ranking:
        """Return a ranking by ``by(value)``, or by the value itself if ``by`` is None."""
        return cls(_itself if by is None else by, smallest)

    def place(self, rows: Rows, value: Any, limit: int | None = None) -> None:
        """Insert a value after those that are equal or better; ``rows`` keeps ``limit`` values at most."""
        by, beats = self.by, lt if self.smallest else gt
        rank = by(value)
        if rows and not beats(rank, by(rows[-1])):
            if limit is None or len(rows) < limit:
                rows.append(value)
            return
        low, high = 0, len(rows)
        while low < high:
            middle = (low + high) // 2
            if beats(rank, by(rows[middle])):
                high = middle
            else:
                low = middle + 1
        rows.insert(low, value)
        if limit is not None:
            del rows[limit:]


def best_of_stream(n: int, ranking: Ranking) -> Aggregation:
    """Return an aggregation of the best N of a stream's values; null values are ignored."""
    place = ranking.place

    def add(key: Any, value: Any, rows: Rows | None) -> Rows | None:
        if value is None:
            return rows
        if rows is None:
            return [value]
        place(rows, value, n)
        return rows

    def merge(key: Any, one: Rows | None, other: Rows | None) -> Rows | None:
        for value in other or ():
            one = add(key, value, one)
        return one

    return Aggregation(add, merge=merge)


def all_of_table(ranking: Ranking) -> Aggregation:
    """Return an aggregation of all of a table's rows, in order; the result is None if there are no rows."""

    def add(key: Any, value: Any, rows: Rows | None) -> Rows:
        rows = [] if rows is None else rows
        ranking.place(rows, value)
        return rows

    def subtract(key: Any, value: Any, rows: Rows) -> Rows | None:
        if value in rows:
            rows.remove(value)
        return rows or None

    return of_changes(add, subtract)
