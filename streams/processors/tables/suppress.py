"""Suppression of a table's updates until a window closes, or for a time; then a key's last one is forwarded.

Suppressed updates are in a store by key, and in memory in a queue by time. A further update of a key replaces
the suppressed one, but keeps its place in the queue. As Kafka Streams' KTableSuppressProcessor.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from streams.errors import SuppressBufferFull
from streams.processors.record import Headers, Process
from streams.processors.tables.change import Change
from streams.processors.tables.table import Getter, TableView
from streams.processors.wiring import Operator, Wiring
from streams.serdes import Serde
from streams.serdes.buffered import Buffered
from streams.serdes.windowed import FOREVER
from streams.state import CachedStore, Entry

UNKNOWN_TIMESTAMP = -1
"""The timestamp of a value that a lookup returns while the key's update is suppressed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """The duration and the bounds of a suppression."""

    wait_ms: int
    """An update is forwarded once stream time is this much past its time, ms."""
    until_window_closes: bool
    """True: an update's time is the end of its key's window; False: its own timestamp."""
    max_records: int | None = None
    """The bound of suppressed updates, None for none."""
    max_bytes: int | None = None
    """The bound of their size, None for none."""
    when_full: Literal["emit_early", "shut_down"] = "shut_down"
    """True if a full buffer forwards its oldest updates, or ends the application."""
    idle_ms: int | None = None
    """The idle time of the task's inputs (wall clock, ms) after which all windows are closed; None: never."""
    aggregations: tuple[str, ...] = ()
    """The nodes whose windows are closed then."""


_Suppressed = tuple[int, bytes | None, int, bool]
"""A suppressed update in memory: `time`, `prior`, its size in bytes, and True if the store has its key."""


class Buffer:
    """The suppressed updates of a task. A new buffer reads those that are in the store.

    Updates since the last commit are in memory, and the next commit writes them to the store. Most have been
    forwarded by then, so that they never reach the store and its changelog.
    """

    def __init__(self, store: CachedStore) -> None:
        self._store = store
        self._queue: list[tuple[int, bytes]] = []
        self._suppressed: dict[bytes, _Suppressed] = {}
        self._unwritten: dict[bytes, tuple[Any, Buffered]] = {}
        self._keeps_keys = store.spec.key_serde.immutable
        self.bytes = 0
        for key, buffered, _ in store.scan():
            self._queue.append((buffered.time, key))
            size = _size(key, buffered)
            self._suppressed[key] = buffered.time, buffered.prior, size, True
            self.bytes += size
        heapq.heapify(self._queue)
        store.unwritten = self

    def __len__(self) -> int:
        return len(self._suppressed)

    @property
    def lowest_time(self) -> int | None:
        """The time (ms) of the first update in the queue, None if it is empty."""
        return self._queue[0][0] if self._queue else None

    def put(self, key: bytes, typed_key: Any, update: Buffered) -> None:
        """Add an update, or replace the key's suppressed one, whose time and prior value are kept.

        ``key``: the bytes of ``typed_key``.
        """
        before = self._suppressed.get(key)
        if before is None:
            time, prior, is_stored = update.time, update.prior, False
            heapq.heappush(self._queue, (time, key))
        else:
            time, prior, size, is_stored = before
            self.bytes -= size
            update = Buffered(time, prior, *update[2:])
        self._unwritten[key] = typed_key, update
        size = _size(key, update)
        self._suppressed[key] = time, prior, size, is_stored
        self.bytes += size

    def find(self, key: bytes) -> Buffered | None:
        """Return the suppressed update of a key, None if there is none."""
        if key in self._unwritten:
            return self._unwritten[key][1]
        entry = self._store.lookup(key) if key in self._suppressed else None
        return None if entry is None else entry[0]

    def first(self) -> tuple[Any, Buffered]:
        """Return the deserialized key of the first update in the queue, and the update."""
        key = self._queue[0][1]
        unwritten = self._unwritten.get(key)
        if unwritten is not None and self._keeps_keys:
            return unwritten
        update = self.find(key)
        assert update is not None, "an update in the queue is here or in the store"
        return self._store.decode_key(key), update

    def drop_first(self, timestamp: int) -> None:
        """Remove the first update of the queue; ``timestamp``: that of its tombstone, if the store has it."""
        _, key = heapq.heappop(self._queue)
        _, _, size, is_stored = self._suppressed.pop(key)
        self.bytes -= size
        self._unwritten.pop(key, None)
        if is_stored:
            self._store.update(key, None, timestamp)

    @property
    def unwritten_keys(self) -> int:
        """The number of updates that the next commit writes to the store."""
        return len(self._unwritten)

    def write(self) -> None:
        """Write the updates since the last commit to the store."""
        store, suppressed = self._store, self._suppressed
        for key, (_, update) in self._unwritten.items():
            time, prior, size, is_stored = suppressed[key]
            if is_stored:
                store.update(key, update, update.timestamp)
            else:
                store.put_new(key, update, update.timestamp)
                suppressed[key] = time, prior, size, True
        self._unwritten = {}


def _size(key: bytes, update: Buffered) -> int:
    return 8 + len(key) + update.size


def suppress(store_name: str, holding: Holding, value_serde: Serde[Any]) -> Operator:
    """Return the operator that suppresses updates; each is forwarded with its own timestamp and headers."""

    def build(wiring: Wiring) -> Process:
        store, task, forward = wiring.store(store_name), wiring.task, wiring.forward
        encode = store.encode_key
        to_bytes, to_value = _nullable(value_serde.serialize), _nullable(value_serde.deserialize)
        is_over = _overflow(holding)
        until_window_closes, wait_ms = holding.until_window_closes, holding.wait_ms
        buffer: Buffer | None = None
        stream_time = -1

        def opened() -> Buffer:
            nonlocal buffer
            buffer = updates = Buffer(store)
            task.suppressed[store_name] = lambda: (len(updates), updates.bytes)
            return updates

        def emit(updates: Buffer) -> None:
            key, update = updates.first()
            if update.new is not None or not until_window_closes:
                change = (to_value(update.new), to_value(update.old))
                forward(key, change, update.timestamp, update.headers)
            updates.drop_first(update.timestamp)

        def close() -> None:
            for node in holding.aggregations:  # first: from now on they drop records of closed windows
                if node in task.window_closers:
                    task.window_closers[node]()
            updates = opened() if buffer is None else buffer
            while (lowest := updates.lowest_time) is not None and lowest < FOREVER:
                emit(updates)

        if holding.idle_ms is not None:
            task.on_idle.append((holding.idle_ms, close))

        def process(key: Any, value: Change, timestamp: int, headers: Headers) -> None:
            nonlocal buffer, stream_time
            if buffer is None:
                buffer = opened()
            if timestamp > stream_time:
                stream_time = timestamp
            time = key.window.end if until_window_closes else timestamp
            new, old = to_bytes(value[0]), to_bytes(value[1])
            place = task.offset, task.topic, task.partition
            buffer.put(encode(key), key, Buffered(time, old, old, new, timestamp, *place, headers))
            while (lowest := buffer.lowest_time) is not None and lowest <= stream_time - wait_ms:
                emit(buffer)
            while is_over is not None and is_over(buffer):
                if holding.when_full == "shut_down":
                    raise SuppressBufferFull(
                        wiring.node, len(buffer), holding.max_records, buffer.bytes, holding.max_bytes
                    )
                emit(buffer)

        return process

    return build


def _overflow(holding: Holding) -> Callable[[Buffer], bool] | None:
    """Return a function that is True for a buffer beyond its bounds; None if there are no bounds."""
    records, size = holding.max_records, holding.max_bytes
    if records is None and size is None:
        return None
    return lambda buffer: (
        (records is not None and len(buffer) > records) or (size is not None and buffer.bytes > size)
    )


def _nullable(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else function(value)


@dataclass(frozen=True, slots=True)
class SuppressedView:
    """A suppressed table's view: while a key's update is suppressed, it has the value before that."""

    parent: TableView
    store: str
    value_serde: Serde[Any]

    @property
    def stores(self) -> tuple[str, ...]:
        return (self.store, *self.parent.stores)

    def bind(self, wiring: Wiring) -> Getter:
        store, get_parent = wiring.store(self.store), self.parent.bind(wiring)
        encode, to_value = store.encode_key, self.value_serde.deserialize

        def get(key: Any) -> Entry | None:
            stored_key, buffer = encode(key), store.unwritten
            if isinstance(buffer, Buffer):
                update = buffer.find(stored_key)
            else:  # no record was processed since the start
                entry = store.lookup(stored_key)
                update = None if entry is None else entry[0]
            if update is None:
                return get_parent(key)
            prior = update.prior
            return None if prior is None else (to_value(prior), UNKNOWN_TIMESTAMP)

        return get
