"""The N greatest, or smallest, values of a key: lists in order of rank, the best first.

Of equals the one that came first stays in front; of sessions that become one, the earlier session's. A table
takes rows back, so all of its rows are kept: what is behind the Nth may come to the front again.
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
    """``by(value)`` is what values are compared by: the value itself unless given."""

    by: Callable[[Any], Any] = _itself
    smallest: bool = False

    @classmethod
    def of(cls, by: Callable[[Any], Any] | None, *, smallest: bool) -> Ranking:
        """By the value itself unless told otherwise."""
        return cls(_itself if by is None else by, smallest)

    def place(self, rows: Rows, value: Any, limit: int | None = None) -> None:
        """Put a value behind those that are as good or better; no more than ``limit`` stay."""
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
    """The best N of a stream's values; null values count for nothing."""
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
    """All of a table's rows, in order; none is a null."""

    def add(key: Any, value: Any, rows: Rows | None) -> Rows:
        rows = [] if rows is None else rows
        ranking.place(rows, value)
        return rows

    def subtract(key: Any, value: Any, rows: Rows) -> Rows | None:
        if value in rows:
            rows.remove(value)
        return rows or None

    return of_changes(add, subtract)
