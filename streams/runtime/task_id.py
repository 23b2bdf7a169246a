"""`TaskId`: the name of a task."""

from __future__ import annotations

from typing import NamedTuple


class TaskId(NamedTuple):
    """Which part of which sub-topology."""

    subtopology: int
    partition: int

    def __str__(self) -> str:
        return f"{self.subtopology}_{self.partition}"

    @classmethod
    def parse(cls, text: str) -> TaskId:
        """The inverse of str()."""
        subtopology, partition = text.split("_")
        return cls(int(subtopology), int(partition))
