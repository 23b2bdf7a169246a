"""`Written`: the rows that a task's sinks have written and that have not been taken yet, by topic."""

from __future__ import annotations

from collections.abc import Iterable

from streams.handlers import DeadLetter
from streams.processors.record import Headers

Row = tuple[int, bytes | None, bytes | None, Headers]
"""Timestamp (ms), key, value and headers of a record to write to a topic."""
Rows = list[Row]


class Written:
    """The rows that a task's sinks have written and that have not been taken yet."""

    def __init__(self, topics: Iterable[str]) -> None:
        self.by_topic: dict[str, Rows] = {topic: [] for topic in topics}
        """Rows whose partition is decided by their key."""
        self.placed: dict[tuple[str, int], Rows] = {}
        """Rows whose partition was chosen by their sink, by topic and partition."""

    def rows_of(self, topic: str) -> Rows:
        """Return the list to which a sink appends a topic's rows."""
        return self.by_topic.setdefault(topic, [])

    def rows_at(self, topic: str, partition: int) -> Rows:
        """Return the list to which a sink appends rows whose partition it has chosen."""
        return self.placed.setdefault((topic, partition), [])

    def add_dead_letters(self, letters: Iterable[DeadLetter]) -> None:
        """Append dead letters to the rows of their topics."""
        for each in letters:
            row = (each.timestamp, each.key, each.value, each.headers)
            self.rows_of(each.topic).append(row)

    def take(self) -> dict[str, Rows]:
        """Remove and return the rows of each topic whose partition is decided by their key."""
        rows_of: dict[str, Rows] = {}
        for topic, rows in self.by_topic.items():
            if rows:
                rows_of[topic] = rows.copy()
                rows.clear()  # the sink continues to append to this very list
        return rows_of

    def take_placed(self) -> dict[tuple[str, int], Rows]:
        """Remove and return the rows whose partition was chosen, by topic and partition."""
        placed = dict(self.placed)
        self.placed.clear()
        return placed


class WrittenInOrder(Written):
    """The rows of all topics in the order in which they were written (`take_in_order`); for tests."""

    def __init__(self, topics: Iterable[str]) -> None:
        super().__init__(())
        self._rows: list[tuple[str, Row]] = []
        for topic in topics:
            self.by_topic[topic] = _RowsOf(topic, self._rows)

    def rows_of(self, topic: str) -> Rows:
        """Return the list to which a sink appends a topic's rows."""
        return self.by_topic.setdefault(topic, _RowsOf(topic, self._rows))

    def rows_at(self, topic: str, partition: int) -> Rows:
        """Return the list of `rows_of`: in tests, topics have one partition."""
        return self.rows_of(topic)

    def take_in_order(self) -> list[tuple[str, Row]]:
        """Remove and return the rows, each with its topic, in the order in which they were written."""
        rows = self._rows.copy()
        self._rows.clear()
        return rows


class _RowsOf(Rows):
    """A list that stays empty: rows appended to it are added to those of all topics."""

    def __init__(self, topic: str, rows: list[tuple[str, Row]]) -> None:
        super().__init__()
        self._topic = topic
        self._rows = rows

    def append(self, row: Row) -> None:
        self._rows.append((self._topic, row))
