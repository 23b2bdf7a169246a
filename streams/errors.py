"""Errors of a streams application.

    StreamsError
    ├── TopologyError           the topology cannot be built or run as it stands: change the program
    ├── SerializationError      bytes and values do not match: names topic, partition and offset
    ├── ProcessingError         the user's function raised: names node, topic, partition and offset
    ├── SuppressBufferFull      what is held back of a table outgrew its bound: raise it, or emit early
    ├── RegistryFailed          a schema registry refuses, or has no such schema: names subject or id, and URL
    │   └── RegistryUnavailable it cannot be asked: no handler leaves a record out for that
    ├── StateError              local state or a changelog cannot be used: the text says what to do
    │   ├── StateFolderLocked   another process works in the same state folder
    │   └── StateCorrupted      a store's files are damaged: close it, then open and restore it again
    ├── InvalidStateStore       a query cannot be answered here and now: the text says where, or when
    │   ├── UnknownStateStore   the topology has no store of that name: correct it
    │   ├── StreamsNotRunning   the application has not started, or has ended
    │   ├── QueryTimedOut       the store's thread did not get round to it: ask again, or allow it more time
    │   └── TooManyQueries      as many wait already as may: ask again later, or fewer at one time
    ├── CommitRefused           the coordinator takes no commit of that size: the text says what to do
    └── TaskLost                somebody else owns the task now: restore it, or give it up

A class says what the caller does next; facts are attributes, the sentence is made in ``__str__``.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterable

from kafka_client.errors import MillstreamError


class StreamsError(MillstreamError):
    """The root of all errors that this package raises."""


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
    """A function of the topology raised an error, which is chained as the cause.

    `during` names the task's step if there was no record: a schedule, or the forwarding of tables' changes.
    """

    def __init__(
        self,
        task: str,
        node: str,
        *,
        topic: str = "",
        partition: int = -1,
        offset: int = -1,
        during: str = "",
    ) -> None:
        super().__init__(task, node, topic, partition, offset)
        self.task = task
        self.node = node
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.during = during

    def __str__(self) -> str:
        what = self.during or f"record {self.topic}-{self.partition} offset {self.offset}"
        node = f", node {self.node}" if self.node else ""
        return f"task {self.task}, {what}{node}{self._cause_text()}"

    def _cause_text(self) -> str:
        if self.__cause__ is None:
            return ""
        raised_at = traceback.extract_tb(self.__cause__.__traceback__)[-1:]
        where = "".join(f" ({each.filename}, line {each.lineno})" for each in raised_at)
        return f": {type(self.__cause__).__name__}: {self.__cause__}{where}"


class SuppressBufferFull(StreamsError):
    """A table's suppressed updates exceed their buffer's bound, and none may be forwarded early."""

    def __init__(
        self, node: str, records: int, max_records: int | None, size: int, max_bytes: int | None
    ) -> None:
        super().__init__(node, records, max_records, size, max_bytes)
        self.node = node
        self.records = records
        self.max_records = max_records
        self.bytes = size
        self.max_bytes = max_bytes

    def __str__(self) -> str:
        def text(bound: int | None) -> str:
            return "any number" if bound is None else str(bound)

        return (
            f"{self.node} holds back {self.records} of {text(self.max_records)} records and {self.bytes} of "
            f"{text(self.max_bytes)} bytes: raise max_records or max_bytes, or use until_time_limit with "
            "when_full='emit_early'"
        )


class RegistryFailed(StreamsError):
    """The schema registry does not have the schema, or refuses it."""


class RegistryUnavailable(RegistryFailed):
    """The schema registry cannot be reached; the record to write or read may be valid."""


class StateError(StreamsError):
    """Local state, or the changelog it comes from, cannot be used."""


class StateFolderLocked(StateError):
    """Another process works in the same state folder: give this one its own ``state_dir``."""


class StateCorrupted(StateError):
    """A store's files are damaged: close the store, and open it again, empty, to restore it."""


class InvalidStateStore(StreamsError):
    """A query cannot be answered by this instance, or not now."""


class UnknownStateStore(InvalidStateStore):
    """The topology has no store of that name."""

    def __init__(self, store: str, stores: Iterable[str]) -> None:
        super().__init__(store, sorted(stores))
        self.store = store
        self.stores = sorted(stores)

    def __str__(self) -> str:
        existing = "has " + ", ".join(self.stores) if self.stores else "has no stores"
        return f"no store is named {self.store!r}; the topology {existing}: name one with store= to query it"


class StreamsNotRunning(InvalidStateStore):
    """The application is not running: its stores can be queried only from its start to its end."""

    def __init__(self, state: str) -> None:
        super().__init__(state)
        self.state = state

    def __str__(self) -> str:
        remedy = "start it first" if self.state == "CREATED" else "ask an instance that runs"
        return f"the application is {self.state}, its stores cannot be queried: {remedy}"


class QueryTimedOut(InvalidStateStore):
    """The thread that owns the store was busy, most likely with a function of the topology."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds

    def __str__(self) -> str:
        return (
            f"no answer from the store's thread within {self.seconds:g} s, which is at work on a record or a "
            "changelog: ask again, or allow more time"
        )


class TooManyQueries(InvalidStateStore):
    """The queue of queries is full."""

    def __init__(self, waiting: int) -> None:
        super().__init__(waiting)
        self.waiting = waiting

    def __str__(self) -> str:
        return f"{self.waiting} queries wait already, which is the most there may be: ask again later"


class CommitRefused(StreamsError):
    """The group coordinator never accepts a task's commit: it is larger than a setting of the broker allows.

    `task` is the id of the task with the largest commit. `what` names the part that is too large. `size` is
    that part's size in bytes. `limit` is the most that the broker allows, in bytes, or None if it is unknown.
    `setting` is the broker's setting with that limit.
    """

    def __init__(self, task: str, what: str, size: int, limit: int | None, setting: str) -> None:
        super().__init__(task, what, size, limit, setting)
        self.task = task
        self.what = what
        self.size = size
        self.limit = limit
        self.setting = setting

    def __str__(self) -> str:
        limit = "" if self.limit is None else f", which is {self.limit}"
        return (
            f"task {self.task} cannot be committed: {self.what} takes {self.size} bytes, more than the "
            f"broker's {self.setting} allows{limit}; raise {self.setting}, or have fewer stores, with "
            "shorter names, in one sub-topology"
        )


class TaskLost(StreamsError):
    """Another member wrote to this task's changelog: the task must be restored before it continues."""
