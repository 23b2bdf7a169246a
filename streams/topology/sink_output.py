"""`Written`: what a task's sinks have written and nobody has taken yet, by topic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from streams.handlers import DeadLetter
from streams.processors.record import Headers

Row = tuple[int, bytes | None, bytes | None, Headers]
"""Timestamp (ms), key, value, headers: what goes to a topic."""
Rows = list[Row]


class Written:
    """`by_topic`: rows whose key decides the partition. `placed`: rows whose sink has chosen it."""

    def __init__(self, topics: Iterable[str]) -> None:
        self.by_topic: dict[str, Rows] = {topic: [] for topic in topics}
        self.placed: dict[tuple[str, int], Rows] = {}

    def rows_of(self, topic: str) -> Rows:
        """What rows of a topic are appended to."""
        return self.by_topic.setdefault(topic, [])

    def rows_at(self, topic: str, partition: int) -> Rows:
        """What rows of a topic are appended to whose partition is chosen."""
        return self.placed.setdefault((topic, partition), [])

    def add_dead_letters(self, letters: Iterable[DeadLetter]) -> None:
        """Write dead letters as any other record."""
        for each in letters:
            row = (each.timestamp, each.key, each.value, each.headers)
            self.rows_of(each.topic).append(row)

    def take(self) -> dict[str, Rows]:
        """The rows of each topic since the last call."""
        return _taken(self.by_topic)

    def take_placed(self) -> dict[tuple[str, int], Rows]:
        """The rows of each topic and partition since the last call."""
        taken = dict(self.placed)
        self.placed.clear()
        return taken


class WrittenInOrder(Written):
    """Rows of all topics in the order in which they were written, for `take_in_order`; for tests."""

    def __init__(self, topics: Iterable[str]) -> None:
        super().__init__(())
        self._rows: list[tuple[str, Row]] = []
        for topic in topics:
            self.by_topic[topic] = _RowsOf(topic, self._rows)

    def rows_of(self, topic: str) -> Rows:
        """What rows of a topic are appended to."""
        return self.by_topic.setdefault(topic, _RowsOf(topic, self._rows))

    def rows_at(self, topic: str, partition: int) -> Rows:
        """The same: topics have one partition."""
        return self.rows_of(topic)

    def take_in_order(self) -> list[tuple[str, Row]]:
        """Topics and rows since the last call."""
        taken = self._rows.copy()
        self._rows.clear()
        return taken


class _RowsOf(Rows):
    """Appends to all topics' rows, and stays empty itself."""

    def __init__(self, topic: str, rows: list[tuple[str, Row]]) -> None:
        super().__init__()
        self._topic = topic
        self._rows = rows

    def append(self, row: Row) -> None:
        self._rows.append((self._topic, row))


def _taken(rows_of: Mapping[str, Rows]) -> dict[str, Rows]:
    taken: dict[str, Rows] = {}
    for topic, rows in rows_of.items():
        if rows:
            taken[topic] = rows.copy()
            rows.clear()  # the sink goes on with this very list
    return taken
