"""What can go wrong in a streams application.

    StreamsError
    ├── TopologyError           the topology cannot be built or run as it stands: change the program
    ├── SerializationError      bytes and values do not match: names topic, partition and offset
    ├── ProcessingError         the user's function raised: names node, topic, partition and offset
    ├── StateError              local state or a changelog cannot be used: the text says what to do
    │   └── StateFolderLocked   another process works in the same state folder
    └── TaskLost                somebody else owns the task now: restore it, or give it up

A class says what the caller does next; facts are attributes, the sentence is made in ``__str__``.
"""

from __future__ import annotations

from logd.errors import MillstreamError


class StreamsError(MillstreamError):
    """Root of everything this package raises by itself."""


class TopologyError(StreamsError):
    """The topology cannot be built, or does not fit the topics it names."""


class SerializationError(StreamsError):
    """A key or value could not be turned into bytes, or back."""

    def __init__(self, what: str, topic: str, partition: int = -1, offset: int = -1) -> None:
        super().__init__(what, topic, partition, offset)
        self.what = what
        self.topic = topic
        self.partition = partition
        self.offset = offset

    def __str__(self) -> str:
        place = f"{self.topic}-{self.partition} offset {self.offset}" if self.offset >= 0 else self.topic
        return f"{self.what} ({place})"


class ProcessingError(StreamsError):
    """A function of the topology raised; the cause is chained."""

    def __init__(self, task: str, topic: str, partition: int, offset: int) -> None:
        super().__init__(task, topic, partition, offset)
        self.task = task
        self.topic = topic
        self.partition = partition
        self.offset = offset

    def __str__(self) -> str:
        cause = f": {type(self.__cause__).__name__}: {self.__cause__}" if self.__cause__ else ""
        return f"task {self.task}, record {self.topic}-{self.partition} offset {self.offset}{cause}"


class StateError(StreamsError):
    """Local state, or the changelog it comes from, cannot be used."""


class StateFolderLocked(StateError):
    """Another process works in the same state folder: give this one its own ``state_dir``."""


class TaskLost(StreamsError):
    """Another member wrote to this task's changelog: it must be restored before it goes on."""
