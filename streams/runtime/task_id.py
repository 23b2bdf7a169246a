"""`TaskId`: the name of a task."""

from __future__ import annotations

from typing import NamedTuple


class TaskId(NamedTuple):
    """The sub-topology and the partition of a task."""

    subtopology: int
    partition: int

    def __str__(self) -> str:
        return f"{self.subtopology}_{self.partition}"

    @classmethod
    def parse(cls, text: str) -> TaskId:
        """Return the id that `str` wrote. Raises ValueError if the text has another form."""
        subtopology, partition = text.split("_")
        return cls(int(subtopology), int(partition))
