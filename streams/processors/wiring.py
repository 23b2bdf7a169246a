"""The parts of a task that its nodes may use, and operators, which build the nodes.

An *operator* is a function from a `Wiring` to the node's `Process`. It is called once per task; everything
it looks up is bound in its closure, so that a record costs one call per node and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias

from streams.errors import StreamsError, TopologyError
from streams.processors.coroutines import Coroutines
from streams.processors.metrics import NodeMetrics
from streams.processors.punctuation import Punctuation, PunctuationQueue, PunctuationType
from streams.processors.record import Headers, Process
from streams.state import CachedStore, KeyValueStore, SessionStore, VersionedStore, WindowStore

RawRecord: TypeAlias = tuple[int, bytes | None, bytes | None, Headers]
"""Timestamp (ms), key, value and headers of an input's record, not deserialized."""


def no_raw_record(offset: int) -> RawRecord | None:
    """Return None: no batch is being processed."""
    return None


class Holding(Protocol):
    """A node that keeps records for a while, outside of any store: a commit waits until all are forwarded."""

    @property
    def record_count(self) -> int:
        """The number of records that the node keeps."""

    @property
    def room(self) -> int:
        """The number of records that the node can take before the task's inputs have to wait."""

    def collect(self) -> None:
        """Forward the records that are ready."""

    def end_turn(self) -> None:
        """Forward the records that are ready, when the task has no more input records for now."""

    def drain(self) -> None:
        """Forward all records; blocks until they are ready."""

    def give_up(self) -> None:
        """Discard all records: the task is closed."""


class Place(NamedTuple):
    """The record being processed by a task, as noted by a node that continues with it later."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    stream_time: int
    during: str
    raw_record: Callable[[int], RawRecord | None]


def _no_folder() -> Path:
    raise StreamsError("there is no state folder here")


def _fail(node: str, error: Exception, record: object) -> None:
    raise error


@dataclass(slots=True)
class TaskState:
    """A task's current record, clocks and schedules; operators read them, the task writes them."""

    task_id: str = ""
    application_id: str = ""
    state_dir: Callable[[], Path] = _no_folder
    """Returns the task's folder, creating it if need be."""
    commit_requested: bool = False
    """True if a processor has requested a commit; the commit resets it."""
    breaks_off: bool = False
    """True if the task is about to move to another instance: no further record is processed."""
    stream_time: int = -1
    wall_clock: int = 0
    windowed_emit_interval_ms: int = 0
    topic: str = ""
    partition: int = -1
    offset: int = -1
    """The offset of the record being processed. In a schedule, ``topic`` is "", the other two are -1."""
    timestamp: int = 0
    """The timestamp (ms) of the record in a user's processor, or the time at which a schedule fired."""
    by_stream_time: PunctuationQueue = field(default_factory=PunctuationQueue)
    by_wall_clock: PunctuationQueue = field(default_factory=PunctuationQueue)
    starters: list[Callable[[], None]] = field(default_factory=list)
    """Functions to call once all nodes are built, in the nodes' order."""
    closers: list[Callable[[], None]] = field(default_factory=list)
    on_idle: list[tuple[int, Callable[[], None]]] = field(default_factory=list)
    """Functions to call when the task's inputs were idle, each with the idle time, ms of wall clock."""
    window_closers: dict[str, Callable[[], None]] = field(default_factory=dict)
    """Functions by node that close all windows of an aggregation, as if stream time had reached their end."""
    global_stores: Mapping[str, CachedStore] = field(default_factory=dict)
    """The stores of global tables, which any node may read."""
    during: str = ""
    """The task's current step if it is not a record: a schedule, or a commit."""
    raw_record: Callable[[int], RawRecord | None] = no_raw_record
    """Returns the input's record at an offset, None if it is no longer in memory; for error handlers."""
    partition_count: Callable[[str], int] = lambda topic: 1
    """Returns the partition count of an output topic; raises StreamsError if the topic does not exist."""
    topic_name: Callable[[str], str] = lambda topic: topic
    """Returns the name of an output topic in the cluster."""
    outer_join_emit_interval_ms: int = 1000
    """The interval of wall clock at which left and outer joins look for records whose windows are closed."""
    coroutines: Coroutines | None = None
    """Runs coroutines; a task without asynchronous nodes needs none."""
    holding: list[Holding] = field(default_factory=list)
    """The nodes that keep records, parents first."""
    suppressed: dict[str, Callable[[], tuple[int, int]]] = field(default_factory=dict)
    """Functions by store that return the number of suppressed updates and their bytes."""
    fail: Callable[[str, Exception, object], None] = _fail
    """Has the processing handler decide about a node's error over a record; returns to drop the record."""

    @property
    def place(self) -> Place:
        """The record being processed; set it to continue with an earlier one."""
        return Place(
            self.topic,
            self.partition,
            self.offset,
            self.timestamp,
            self.stream_time,
            self.during,
            self.raw_record,
        )

    @place.setter
    def place(self, place: Place) -> None:
        self.topic, self.partition, self.offset, self.timestamp = place[:4]
        self.stream_time, self.during, self.raw_record = place[4:]

    def schedule(self, interval_ms: int, callback: Callable[[int], None], on: PunctuationType) -> Punctuation:
        """Call ``callback(now)`` at whole intervals of stream time, or of the wall clock from now on."""
        if on == "stream_time":
            punctuation = Punctuation(0, interval_ms, callback)
            self.by_stream_time.add(punctuation)
        else:
            punctuation = Punctuation(self.wall_clock + interval_ms, interval_ms, callback)
            self.by_wall_clock.add(punctuation)
        return punctuation

    def begin_punctuation(self, now: int) -> None:
        """Note that no record is being processed, but a schedule that fires at ``now`` (ms)."""
        self.topic, self.partition, self.offset, self.timestamp = "", -1, -1, now


@dataclass(slots=True)
class Wiring:
    """A node's view of its task. ``forward`` sends to all children, ``children`` has them by name."""

    node: str
    forward: Process
    children: Mapping[str, Process]
    stores: Mapping[str, CachedStore]
    metrics: NodeMetrics
    task: TaskState

    def store(self, name: str) -> CachedStore:
        """Return a global table's store, or the node's. Raises TopologyError if there is none."""
        if name in self.task.global_stores:
            return self.task.global_stores[name]
        if name not in self.stores:
            raise TopologyError(f"{self.node} has no store {name!r}; name it in its stores=")
        return self.stores[name]

    def key_value_store(self, name: str) -> KeyValueStore[object, object]:
        """Return a store that must be a key-value store."""
        store = self.store(name)
        assert isinstance(store, KeyValueStore), f"{name} is not a key-value store"
        return store

    def table_store(self, name: str) -> CachedStore:
        """Return a store that must keep a table: key-value or versioned."""
        store = self.store(name)
        assert isinstance(store, KeyValueStore | VersionedStore), f"{name} keeps no table"
        return store

    def window_store(self, name: str) -> WindowStore[object, object]:
        """Return a store that must be a window store."""
        store = self.store(name)
        assert isinstance(store, WindowStore), f"{name} is not a window store"
        return store

    def session_store(self, name: str) -> SessionStore[object, object]:
        """Return a store that must be a session store."""
        store = self.store(name)
        assert isinstance(store, SessionStore), f"{name} is not a session store"
        return store


Operator: TypeAlias = Callable[[Wiring], Process]
