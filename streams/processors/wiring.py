"""What a node may use of the task it is built into, and the factory that builds it.

An *operator* is a function from a `Wiring` to the node's `Process`. It is called once per task; everything
it looks up there is bound in its closure, so that a record costs one call per node and nothing else.
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
"""Timestamp (ms), key, value and headers of an input's record, as they were read."""


def no_raw_record(offset: int) -> RawRecord | None:
    """There is no batch at work."""
    return None


class Holding(Protocol):
    """A node that keeps records for a while, outside of any store: a commit waits until it lets them go."""

    @property
    def held(self) -> int:
        """How many records it keeps."""

    @property
    def room(self) -> int:
        """How many more it takes before the task's inputs have to wait."""

    def collect(self) -> None:
        """Forward what is ready."""

    def end_turn(self) -> None:
        """As `collect`; there are no more records at hand."""

    def drain(self) -> None:
        """Forward all there is; blocks until it is ready."""

    def give_up(self) -> None:
        """Forget all there is: the task is closed."""


class Place(NamedTuple):
    """The record a task is at: what a node notes that goes on with it later."""

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
    """Where a task is; operators read it, the task writes it."""

    task_id: str = ""
    application_id: str = ""
    state_dir: Callable[[], Path] = _no_folder
    """Makes the task's folder, if it is not there."""
    commit_requested: bool = False
    """True if a processor asks for a commit; the commit takes it back."""
    breaks_off: bool = False
    """True if the task is to change hands: no record is begun any more."""
    stream_time: int = -1
    wall_clock: int = 0
    windowed_emit_interval_ms: int = 0
    topic: str = ""
    partition: int = -1
    offset: int = -1
    """Of the record in work; topic, partition and offset are empty where a schedule fires."""
    timestamp: int = 0
    """Of the record that a processor of the user's has in work, or when the schedule fired; ms."""
    by_stream_time: PunctuationQueue = field(default_factory=PunctuationQueue)
    by_wall_clock: PunctuationQueue = field(default_factory=PunctuationQueue)
    starters: list[Callable[[], None]] = field(default_factory=list)
    """Called once all nodes are built, in their order."""
    closers: list[Callable[[], None]] = field(default_factory=list)
    on_idle: list[tuple[int, Callable[[], None]]] = field(default_factory=list)
    """Milliseconds of wall clock for which the task's inputs brought nothing, and what to call then."""
    window_closers: dict[str, Callable[[], None]] = field(default_factory=dict)
    """By node, what has all windows of an aggregation closed, as if stream time were that far."""
    global_stores: Mapping[str, CachedStore] = field(default_factory=dict)
    """The stores of global tables, which any node may read."""
    during: str = ""
    """What is done that is no record: a schedule, or a commit."""
    raw_record: Callable[[int], RawRecord | None] = no_raw_record
    """The input's record at an offset, if it is still at hand: for those over which a task fails."""
    partition_count: Callable[[str], int] = lambda topic: 1
    """How many partitions a topic has that is written; raises StreamsError for one that does not exist."""
    topic_name: Callable[[str], str] = lambda topic: topic
    """What the cluster calls a topic that is written."""
    outer_join_emit_interval_ms: int = 1000
    """How often, by wall clock, left and outer joins look for records whose windows are closed."""
    coroutines: Coroutines | None = None
    """Where coroutines run; a task without asynchronous nodes needs none."""
    holding: list[Holding] = field(default_factory=list)
    """The nodes that keep records, parents first."""
    suppressed: dict[str, Callable[[], tuple[int, int]]] = field(default_factory=dict)
    """By store, how many updates are held back there now, and their bytes."""
    fail: Callable[[str, Exception, object], None] = _fail
    """Has the processing handler decide about the error of a node over a record; returns to leave it out."""

    @property
    def place(self) -> Place:
        """Where the task is; set it to go on with a record from there."""
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
        """There is no record in work, but a time."""
        self.topic, self.partition, self.offset, self.timestamp = "", -1, -1, now


@dataclass(slots=True)
class Wiring:
    """One node's view of its task. ``forward`` goes to all children, ``children`` has them by name."""

    node: str
    forward: Process
    children: Mapping[str, Process]
    stores: Mapping[str, CachedStore]
    metrics: NodeMetrics
    task: TaskState

    def store(self, name: str) -> CachedStore:
        """The node's store of that name, or a global table's."""
        if name in self.task.global_stores:
            return self.task.global_stores[name]
        if name not in self.stores:
            raise TopologyError(f"{self.node} has no store {name!r}; name it in its stores=")
        return self.stores[name]

    def key_value_store(self, name: str) -> KeyValueStore[object, object]:
        """The store, which must be a key-value store."""
        store = self.store(name)
        assert isinstance(store, KeyValueStore), f"{name} is not a key-value store"
        return store

    def table_store(self, name: str) -> CachedStore:
        """The store, which must be one that keeps a table: key-value or versioned."""
        store = self.store(name)
        assert isinstance(store, KeyValueStore | VersionedStore), f"{name} keeps no table"
        return store

    def window_store(self, name: str) -> WindowStore[object, object]:
        """The store, which must be a window store."""
        store = self.store(name)
        assert isinstance(store, WindowStore), f"{name} is not a window store"
        return store

    def session_store(self, name: str) -> SessionStore[object, object]:
        """The store, which must be a session store."""
        store = self.store(name)
        assert isinstance(store, SessionStore), f"{name} is not a session store"
        return store


Operator: TypeAlias = Callable[[Wiring], Process]
