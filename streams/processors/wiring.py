"""What a node may use of the task it is built into, and the factory that builds it.

An *operator* is a function from a `Wiring` to the node's `Process`. It is called once per task; everything
it looks up there is bound in its closure, so that a record costs one call per node and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from streams.errors import TopologyError
from streams.processors.metrics import NodeMetrics
from streams.processors.record import Process
from streams.state import CachedStore, KeyValueStore, WindowStore

PunctuationType = Literal["stream_time", "wall_clock"]


@dataclass(slots=True, eq=False)
class Punctuation:
    """A callback on a schedule; a jump over several intervals fires once."""

    interval_ms: int
    kind: PunctuationType
    callback: Callable[[int], None]
    next_at: int | None = None

    def is_due(self, now: int) -> bool:
        """Whether to fire at ``now``; the first look only starts the schedule."""
        if self.next_at is None:
            self.next_at = now + self.interval_ms if self.kind == "wall_clock" else self._aligned(now)
        if now < self.next_at:
            return False
        self.next_at = now + self.interval_ms if self.kind == "wall_clock" else self._aligned(now)
        return True

    def _aligned(self, now: int) -> int:
        """Stream time schedules are aligned to 0."""
        return (now // self.interval_ms + 1) * self.interval_ms


@dataclass(slots=True)
class TaskState:
    """Where a task is; operators read it, the task writes it."""

    task_id: str = ""
    stream_time: int = -1
    wall_clock: int = 0
    topic: str = ""
    partition: int = -1
    offset: int = -1
    punctuations: list[Punctuation] = field(default_factory=list)
    closers: list[Callable[[], None]] = field(default_factory=list)
    global_stores: Mapping[str, CachedStore] = field(default_factory=dict)
    """The stores of global tables, which any node may read."""
    outer_join_emit_interval_ms: int = 1000
    """How often, by wall clock, left and outer joins look for records whose windows are closed."""


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

    def window_store(self, name: str) -> WindowStore[object, object]:
        """The store, which must be a window store."""
        store = self.store(name)
        assert isinstance(store, WindowStore), f"{name} is not a window store"
        return store


Operator: TypeAlias = Callable[[Wiring], Process]
