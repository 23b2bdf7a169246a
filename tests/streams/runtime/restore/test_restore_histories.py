"""Any history of a changelog restores to the state as of the last commit.

A history has commits of one or several batches, some of which break off, markers and aborted transactions.
It has full compaction, expired tombstones and a log start that moves. It has restarts with the disk as of any
earlier commit, or with none. The code that writes and restores is the real one. The keys of a history are
those of a key-value store, or are mapped to windows, sessions or versions of two keys.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kafka_client.records import Codec
from streams.runtime.commit.changelog_writer import BATCH_OVERHEAD, ChangelogWriter
from streams.runtime.restore.restore import restore_stores
from streams.serdes import Window, Windowed
from streams.state import (
    KeyValueStore,
    MemoryBackend,
    SessionStore,
    StoreKind,
    StoreSpec,
    VersionedStore,
    WindowStore,
)
from streams.state.versions import key_of, valid_from_of
from tests.streams.support.changelog_log import RETENTION_MS, TOPIC_ID, TP, Log
from tests.support import depth

ONE_BATCH, SEVERAL = 100_000, BATCH_OVERHEAD + 60

Changes = dict[str, int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of store, to be read and written by the histories' keys.

    `place` returns a history key's place in the store, and `raw_place` that of the key's changelog bytes.
    """

    store: Callable[[StoreSpec, MemoryBackend], Any]
    spec: StoreSpec
    place: Callable[[str], Any]
    raw_place: Callable[[Any, bytes], Any]
    get: Callable[[Any, Any], object]
    put: Callable[[Any, Any, int | None], object]
    all: Callable[[Any], dict[Any, int]]

    def name_of(self, store: Any, raw: bytes) -> str:
        """Return the history's key that has these bytes in the changelog."""
        place = self.raw_place(store, raw)
        return next(name for name in KEYS if self.place(name) == place)

    def content(self, store: Any) -> dict[str, int]:
        """Return the store's content, by the history's keys."""
        values = self.all(store)
        return {name: values[self.place(name)] for name in KEYS if self.place(name) in values}


KEYS = "abcdef"
LONG_MS = 10**9
"""Nothing is forgotten by its time."""


def spec(kind: StoreKind, **more: Any) -> StoreSpec:
    return StoreSpec(name="s", kind=kind, key_serde=str, value_serde=int, persistent=False, **more)


def moment(name: str) -> tuple[str, int]:
    """Return one of two keys, and one of its three times."""
    number = KEYS.index(name)
    return "k" * (1 + number % 2), 10 * (number // 2)


def versions(store: Any) -> dict[tuple[str, int], int]:
    return {(key, each.timestamp): each.value for key in ("k", "kk") for each in store.versions(key)}


def session(name: str) -> Windowed[str]:
    key, start = moment(name)
    return Windowed(key, Window(start, start + 5))


KINDS = {
    "key_value": Kind(
        store=KeyValueStore,
        spec=spec("key_value"),
        place=lambda name: name,
        raw_place=lambda store, raw: store.decode_key(raw),
        get=lambda store, key: store.get(key),
        put=lambda store, key, value: store.put(key, value, 5),
        all=lambda store: dict(store.all()),
    ),
    "window": Kind(
        store=WindowStore,
        spec=spec("window", window_size_ms=10, retention_ms=LONG_MS),
        place=lambda name: Windowed(moment(name)[0], Window(moment(name)[1], moment(name)[1] + 10)),
        raw_place=lambda store, raw: store.decode_key(raw),
        get=lambda store, window: store.get(window.key, window.window.start),
        put=lambda store, window, value: store.put(window.key, window.window.start, value),
        all=lambda store: dict(store.all()),
    ),
    "session": Kind(
        store=SessionStore,
        spec=spec("session", retention_ms=LONG_MS),
        place=session,
        raw_place=lambda store, raw: store.decode_key(raw),
        get=lambda store, each: store.fetch_session(each.key, *each.window),
        put=lambda store, each, value: store.put(each, value),
        all=lambda store: dict(store.all()),
    ),
    "versioned": Kind(
        store=VersionedStore,
        spec=spec("versioned_key_value", history_retention_ms=LONG_MS),
        place=moment,
        raw_place=lambda store, raw: (key_of(raw).decode(), valid_from_of(raw)),
        get=lambda store, version: store.get(*version),
        put=lambda store, version, value: store.put(version[0], value, version[1]),
        all=versions,
    ),
}


class BrokenOff(Exception):
    """The process ends while it sends."""


class Worker:
    """A worker that runs work at once, in place of `runtime.worker.Worker`."""

    async def run(self, work: Any, *args: Any) -> Any:
        return work(*args)


@dataclass
class Producer:
    """``left``: batches before it breaks off."""

    log: Log
    max_request_size: int
    left: int
    codec: Codec = Codec.NONE

    async def send_batch(self, topic: str, partition: int, batch: bytes) -> int:
        if self.left == 0:
            raise BrokenOff
        self.left -= 1
        return self.log.append(batch)


class Application:
    """A task with one store, its disks as of each commit, and the expected state of the store."""

    def __init__(self, kind: Kind, *, exactly_once: bool) -> None:
        self.log = Log()
        self.now = 1_700_000_000_000
        self.state: dict[str, int] = {}
        self.truncated: set[str] = set()
        """Keys that nothing is left of in the log, which only a disk has."""
        self._kind = kind
        self._exactly_once = exactly_once
        self._cut: int | None = None
        self._disks: list[tuple[dict[bytes, bytes], int, int | None]] = []

    async def restart(self, disk: int) -> None:
        """Restart with the disk as of that many commits ago, or with none if ``disk`` is 0."""
        self._backend = backend = MemoryBackend()
        if 0 < disk <= len(self._disks):
            content, checkpoint, as_of = self._disks[-disk]
            backend.wipe(TOPIC_ID)
            backend.write(content.items(), checkpoint, as_of)
        self.store: Any = self._kind.store(self._kind.spec, backend)
        cuts, ends = await restore_stores(
            self.log,  # type: ignore[arg-type]
            {TP: self.store},
            {} if self._cut is None else {"s": self._cut},
            worker=Worker(),  # type: ignore[arg-type]
            clock=lambda: self.now,
            exactly_once=self._exactly_once,
        )
        self._running: Any = SimpleNamespace(
            changelogs={"s": TP}, cuts=cuts, ends=ends, task=SimpleNamespace(stores={"s": self.store})
        )
        values = self._kind.content(self.store)
        missing = self.state.keys() - values.keys()
        assert missing <= self.truncated, "nothing is lost that the log has"
        assert values == {key: value for key, value in self.state.items() if key not in missing}
        self.state = values
        if missing:
            self._disks.clear()  # They still have what everybody else has begun to do without.
        if self.log.stable is not None:
            self.log.mark()  # what was open is aborted in the end

    async def commit(self, changes: Changes, size: int, batches: int = -1) -> None:
        """``batches``: so many are sent at most, then the process ends; unless given, all is committed."""
        for key, value in changes.items():
            place = self._kind.place(key)
            if value is None or value % 2:  # so it knows whether the key is new
                self._kind.get(self.store, place)
            self._kind.put(self.store, place, value)
        # A listener has old values looked up, by which keys are known to be new, too.
        self.store.listener, self.store.tells_old_values = (
            ([].extend, True) if len(changes) % 2 else (None, False)
        )
        self.store.drain()
        producer = Producer(self.log, self._one_batch_for_one(size), batches)
        writer: Any = ChangelogWriter(producer, Worker(), undoable=not self._exactly_once)  # type: ignore[arg-type]
        for each in await writer.send(self._running, "s", self.store.pending):
            if self._exactly_once:
                self._running.ends["s"] = each.ack + each.count
            else:
                assert each.ack == each.expected
        if batches >= 0:
            raise BrokenOff
        self._cut = self._running.cuts["s"] = self._running.ends["s"]
        if self._exactly_once:
            self.log.mark()
        self.truncated -= {self._kind.name_of(self.store, raw) for raw in self.store.pending}
        self.store.written(self._cut, self.now)
        self._disks.append((dict(self._backend.scan()), self._cut, self.now))
        for key, value in changes.items():
            self.state.pop(key, None)
            if value is not None:
                self.state[key] = value

    def _one_batch_for_one(self, size: int) -> int:
        """Repairs of a commit of one batch, which did not say what its keys had, are in one batch as well;
        see `runtime.undo` for when they are not.
        """
        tail = [row for row in self.log.rows if self._cut is None or row.offset >= self._cut]
        bare = not self._exactly_once and any(not row.headers for row in tail)
        return ONE_BATCH if bare else size

    async def break_off(self, changes: Changes, size: int, batches: int, *, ended: bool, disk: int) -> None:
        """Commit, but break off after so many batches, maybe all, and restart. Exactly once, ``ended`` says
        whether the transaction is aborted before the restart or is still open.
        """
        end = self.log.end
        try:
            await self.commit(changes, size, batches)
        except BrokenOff:
            self._leave_open(end, ended=ended)
        await self.restart(disk)

    def _leave_open(self, first: int, *, ended: bool) -> None:
        if self._exactly_once and self.log.end > first:
            for row in self.log.rows:
                row.aborted = row.aborted or row.offset >= first
            self.log.stable = first
            if ended:
                self.log.mark()

    async def age(self) -> None:
        """Tombstones are so old that they are removed, unless a broken off commit waits to be repaired."""
        if self._cut is not None and (self._exactly_once or self._cut == self.log.end):
            self.now += RETENTION_MS
            self.log.compact(tombstones=True)

    async def compact(self) -> None:
        self.log.compact()

    async def truncate_start(self, share: int) -> None:
        """So many tenths of what is committed."""
        if self._cut is not None:
            before = self.log.keys(self._cut)
            self.log.truncate_start(self._cut * share // 10)
            truncated = before - self.log.keys(self._cut)
            self.truncated |= {self._kind.name_of(self.store, raw) for raw in truncated}


changes = st.dictionaries(st.sampled_from(KEYS), st.none() | st.integers(0, 3), min_size=1)
sizes = st.sampled_from([ONE_BATCH, SEVERAL])
disks = st.integers(0, 3)
steps: st.SearchStrategy[tuple[str, dict[str, Any]]] = st.one_of(
    st.tuples(st.just("commit"), st.fixed_dictionaries({"changes": changes, "size": sizes})),
    st.tuples(
        st.just("break_off"),
        st.fixed_dictionaries(
            {
                "changes": changes,
                "size": sizes,
                "batches": st.integers(0, 3),
                "ended": st.booleans(),
                "disk": disks,
            }
        ),
    ),
    st.tuples(st.just("restart"), st.fixed_dictionaries({"disk": disks})),
    st.tuples(st.sampled_from(["compact", "age"]), st.just({})),
    st.tuples(st.just("truncate_start"), st.fixed_dictionaries({"share": st.integers(0, 10)})),
)


def restored(kind: Kind, exactly_once: bool, history: list[tuple[str, dict[str, Any]]], read: int) -> None:
    """Play a history; AssertionError if a restart has another state than the last commit's."""

    async def case() -> None:
        application = Application(kind, exactly_once=exactly_once)
        with pytest.MonkeyPatch.context() as patch:
            application.log.install(patch, read)
            await application.restart(0)
            for what, arguments in history:
                await getattr(application, what)(**arguments)
            await application.restart(0)

    asyncio.run(case())


# The story of the bug: the second commit repairs the first one, breaks off as well, and compaction had taken
# what the first one's key had before.
@example(
    exactly_once=False,
    history=[
        ("commit", {"changes": {"a": 0}, "size": ONE_BATCH}),
        ("break_off", {"changes": {"a": 1}, "size": ONE_BATCH, "batches": 1, "ended": True, "disk": 0}),
        ("break_off", {"changes": {"b": 1}, "size": ONE_BATCH, "batches": 1, "ended": True, "disk": 0}),
        ("compact", {}),
        ("restart", {"disk": 0}),
    ],
    read=1,
)
@given(exactly_once=st.booleans(), history=st.lists(steps, max_size=25), read=st.integers(1, 9))
def test_a_restore_gives_the_state_of_the_last_commit(
    exactly_once: bool, history: list[tuple[str, dict[str, Any]]], read: int
) -> None:
    restored(KINDS["key_value"], exactly_once, history, read)


@pytest.mark.parametrize("kind", [name for name in KINDS if name != "key_value"])
@settings(max_examples=depth.times(60))
@given(exactly_once=st.booleans(), history=st.lists(steps, max_size=25), read=st.integers(1, 9))
def test_so_does_one_of_another_kind(
    kind: str, exactly_once: bool, history: list[tuple[str, dict[str, Any]]], read: int
) -> None:
    restored(KINDS[kind], exactly_once, history, read)
