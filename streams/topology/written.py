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

    def add_dead_letters(self, letters: Iterable[DeadLetter]) -> None:
        """Write dead letters as any other record."""
        for each in letters:
            row = (each.timestamp, each.key, each.value, each.headers)
            self.by_topic.setdefault(each.topic, []).append(row)

    def take(self) -> dict[str, Rows]:
        """The rows of each topic since the last call."""
        return _taken(self.by_topic)

    def take_placed(self) -> dict[tuple[str, int], Rows]:
        """The rows of each topic and partition since the last call."""
        taken = dict(self.placed)
        self.placed.clear()
        return taken


def _taken(rows_of: Mapping[str, Rows]) -> dict[str, Rows]:
    taken: dict[str, Rows] = {}
    for topic, rows in rows_of.items():
        if rows:
            taken[topic] = rows.copy()
            rows.clear()  # the sink goes on with this very list
    return taken
