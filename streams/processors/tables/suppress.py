"""Tables whose updates are held back: until a window closes, or for a time, the last one of a key counting.

What is held back stands in a store by key, and here in the order of its time; what comes for a key that is
held takes the place in the queue that the key has. As Kafka Streams' KTableSuppressProcessor.
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
"""Of a value that is the table's for others while its successor is held back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """What is held back, how long, and how much.

    `wait_ms`: an update goes once stream time is so much past its time, which is the end of its key's window
    if `until_window_closes`, else its own. `max_records`, `max_bytes`: bounds of the buffer (None: none);
    `when_full`: whether the oldest go early then, or the application ends. `idle_ms`: how long the task's
    inputs bring nothing, by wall clock, before all windows are closed; `aggregations`: the nodes they are of.
    """

    wait_ms: int
    until_window_closes: bool
    max_records: int | None = None
    max_bytes: int | None = None
    when_full: Literal["emit_early", "shut_down"] = "shut_down"
    idle_ms: int | None = None
    aggregations: tuple[str, ...] = ()


_Held = tuple[int, bytes | None, int, bool]
"""What is in memory of each update that is held back: `time` and `prior` as it has them, its bytes, and
whether the store knows its key.
"""


class Buffer:
    """The updates of one task that are held back; those that the store has already are read at once.

    Those since the last commit are here, and come to the store with the next one: most of them are gone by
    then, and neither the store nor its changelog ever hear of them.
    """

    def __init__(self, store: CachedStore) -> None:
        self._store = store
        self._queue: list[tuple[int, bytes]] = []
        self._held: dict[bytes, _Held] = {}
        self._unwritten: dict[bytes, tuple[Any, Buffered]] = {}
        self._keeps_keys = store.spec.key_serde.immutable
        self.bytes = 0
        for key, buffered, _ in store.scan():
            self._queue.append((buffered.time, key))
            size = _size(key, buffered)
            self._held[key] = buffered.time, buffered.prior, size, True
            self.bytes += size
        heapq.heapify(self._queue)
        store.unwritten = self

    def __len__(self) -> int:
        return len(self._held)

    @property
    def lowest_time(self) -> int | None:
        """The time of what goes first, None if nothing is held."""
        return self._queue[0][0] if self._queue else None

    def put(self, key: bytes, told_as: Any, update: Buffered) -> None:
        """Hold an update back; of a key that is held already it takes the place, and the prior value.

        ``told_as``: the key that ``key`` is the bytes of.
        """
        before = self._held.get(key)
        if before is None:
            time, prior, is_stored = update.time, update.prior, False
            heapq.heappush(self._queue, (time, key))
        else:
            time, prior, size, is_stored = before
            self.bytes -= size
            update = Buffered(time, prior, *update[2:])
        self._unwritten[key] = told_as, update
        size = _size(key, update)
        self._held[key] = time, prior, size, is_stored
        self.bytes += size

    def find(self, key: bytes) -> Buffered | None:
        """What is held back of a key."""
        if key in self._unwritten:
            return self._unwritten[key][1]
        entry = self._store.lookup(key) if key in self._held else None
        return None if entry is None else entry[0]

    def first(self) -> tuple[Any, Buffered]:
        """The key of what goes first, as operators know it, and the update."""
        key = self._queue[0][1]
        unwritten = self._unwritten.get(key)
        if unwritten is not None and self._keeps_keys:
            return unwritten
        update = self.find(key)
        assert update is not None, "what is in the queue is here or in the store"
        return self._store.decode_key(key), update

    def drop_first(self, timestamp: int) -> None:
        """Forget what goes first; ``timestamp`` is that of the deletion in the changelog, if that has it."""
        _, key = heapq.heappop(self._queue)
        _, _, size, is_stored = self._held.pop(key)
        self.bytes -= size
        self._unwritten.pop(key, None)
        if is_stored:
            self._store.update(key, None, timestamp)

    @property
    def unwritten_keys(self) -> int:
        """How many the next commit brings to the store."""
        return len(self._unwritten)

    def write(self) -> None:
        """Bring them there."""
        store, held = self._store, self._held
        for key, (_, update) in self._unwritten.items():
            time, prior, size, is_stored = held[key]
            if is_stored:
                store.update(key, update, update.timestamp)
            else:
                store.put_new(key, update, update.timestamp)
                held[key] = time, prior, size, True
        self._unwritten = {}


def _size(key: bytes, held: Buffered) -> int:
    return 8 + len(key) + held.size


def suppress(store_name: str, holding: Holding, value_serde: Serde[Any]) -> Operator:
    """Hold updates back; those that go have their own timestamp and headers."""

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
            buffer = held = Buffer(store)
            task.suppressed[store_name] = lambda: (len(held), held.bytes)
            return held

        def emit(held: Buffer) -> None:
            key, update = held.first()
            if update.new is not None or not until_window_closes:
                change = (to_value(update.new), to_value(update.old))
                forward(key, change, update.timestamp, update.headers)
            held.drop_first(update.timestamp)

        def close() -> None:
            for node in holding.aggregations:  # first: what comes late is dropped there from now on
                if node in task.window_closers:
                    task.window_closers[node]()
            held = opened() if buffer is None else buffer
            while (lowest := held.lowest_time) is not None and lowest < FOREVER:
                emit(held)

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
    """Return True if a buffer is beyond its bounds; None if it has none."""
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
    """A table as others know it: of a key that is held back, what it was before."""

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
                held = buffer.find(stored_key)
            else:  # not a record has come since the start
                entry = store.lookup(stored_key)
                held = None if entry is None else entry[0]
            if held is None:
                return get_parent(key)
            prior = held.prior
            return None if prior is None else (to_value(prior), UNKNOWN_TIMESTAMP)

        return get
