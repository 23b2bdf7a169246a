"""Records past retention are deleted, a segment of stream time at a time, and may be deleted from the
changelog.

The story: each window that expired was a tombstone in the changelog and in RocksDB, which was half of all
that an application with windows wrote.
"""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streams.serdes import Window, Windowed
from streams.state import Backend, MemoryBackend, SessionStore, StoreSpec, WindowStore, open_store
from streams.state.cache import join
from streams.state.rocks import RocksBackend
from streams.state.window_key import window_key
from tests.support.depth import seeds

MINUTE = 60_000


def spec(kind: Any = "window", retention: int = 10 * MINUTE, **settings: Any) -> StoreSpec:
    return StoreSpec(
        name="w",
        kind=kind,
        key_serde=str,
        value_serde=int,
        window_size_ms=MINUTE,
        retention_ms=retention,
        **settings,
    )


class CountingBackend(MemoryBackend):
    """Counts what it is asked for."""

    reads = 0

    def get(self, key: bytes) -> bytes | None:
        self.reads += 1
        return super().get(key)

    def scan(self, *bounds: Any, **settings: Any) -> Any:
        for each in super().scan(*bounds, **settings):
            self.reads += 1
            yield each


def commit(store: Any, checkpoint: int = 1) -> dict[bytes, tuple[bytes | None, int]]:
    store.drain()
    pending = dict(store.pending)
    store.written(checkpoint)
    return pending


def test_expiry_reads_nothing() -> None:
    backend = CountingBackend()
    store: WindowStore[str, int] = WindowStore(spec(), backend)
    for number in range(3000):
        store.put(f"{number:05}", number % 5 * MINUTE, number)
    commit(store)
    backend.reads = 0
    store.put("new", 26 * MINUTE, 1)
    assert commit(store).keys() == {window_key(b"new", 26 * MINUTE)}
    assert backend.reads == 0
    assert len(list(store.all())) == len(list(store.backend.scan())) == 1


@pytest.fixture(params=["memory", "rocks"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    made: Backend = MemoryBackend() if request.param == "memory" else RocksBackend(tmp_path / "w")
    yield made
    made.close()


def test_nothing_is_left_of_a_segment(backend: Backend) -> None:
    """Neither by time, nor what is noted of it."""
    store: WindowStore[str, int] = WindowStore(spec(by_time=True, cached=False), backend)
    for minute in range(60):
        store.put("a", minute * MINUTE, minute)
        commit(store, minute + 1)
    live = range(45, 60)  # segments of five minutes
    assert [key for key, _ in store.backend.scan()] == [window_key(b"a", each * MINUTE) for each in live]
    assert len(list(backend.scan())) == 2 * len(live) + len(live) // 5
    assert store.closed(0, 50 * MINUTE) == [window_key(b"a", each * MINUTE) for each in range(45, 51)]


def test_a_window_that_is_put_and_expires_before_the_commit() -> None:
    store: WindowStore[str, int] = WindowStore(spec(), MemoryBackend())
    changed = []
    store.listener = lambda changes: changed.extend((key, value) for key, value, *_ in changes)
    store.put("a", 0, 1)
    store.put("b", 100 * MINUTE, 1)
    last = window_key(b"b", 100 * MINUTE)
    assert commit(store).keys() == {last}
    assert [key for key, _ in store.backend.scan()] == [last]
    assert changed == [(window_key(b"a", 0), 1), (last, 1)]


def test_what_waits_to_be_emitted_does_not_expire() -> None:
    store: WindowStore[str, int] = WindowStore(spec(by_time=True), MemoryBackend())
    store.put("a", 0, 1)
    store.put("a", 100 * MINUTE, 1)
    commit(store)
    store.restored()
    assert len(store.closed(0, 100 * MINUTE)) == 2
    store.emitted_to = 100 * MINUTE
    store.put("a", 101 * MINUTE, 1)
    commit(store)
    assert len(store.closed(0, 101 * MINUTE)) == 2, "the first is gone"


def test_what_is_needed_of_a_changelog_outlives_a_restart(tmp_path: Path) -> None:
    for first, last in ((0, 30), (30, 60)):
        store = open_store(spec(), tmp_path)
        assert isinstance(store, WindowStore)
        if first:
            store.set_clocks({"w": (first - 1) * MINUTE})
        for minute in range(first, last):
            store.put("a", minute * MINUTE, minute)
            commit(store, 10 * minute + 10)
        oldest = next(store.backend.scan())[0]
        assert store.needed_from == (last - 15) * 10
        assert oldest == window_key(b"a", (last - 15) * MINUTE)
        store.close()


def test_a_segment_of_a_release_that_noted_nothing_is_needed_from_the_start(tmp_path: Path) -> None:
    store = open_store(spec(), tmp_path)
    store.update(window_key(b"a", 0), 1, 0)
    commit(store, 7)
    inner: Any = store.backend._inner  # type: ignore[attr-defined]
    inner.write([(key, None) for key, _ in inner.scan(b"\xfe", b"\xff")], 7)
    store.close()
    again = open_store(spec(), tmp_path)
    assert again.needed_from == 0
    again.close()


class Changelog:
    """Records as they are left where everything is deleted that stores say they do not need."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, bytes, bytes | None, int]] = []
        self.start = self.end = 0

    def commit(self, store: Any) -> None:
        store.drain()
        for key, (value, timestamp) in store.pending.items():
            self.rows.append((self.end, key, value, timestamp))
            self.end += 1
        store.written(self.end)
        assert self.start <= store.needed_from <= self.end
        self.start = store.needed_from
        self.rows = [row for row in self.rows if row[0] >= self.start]

    def restore(self, store: Any, chance: random.Random) -> None:
        """Restore the store, some records at a time, as `runtime.restore` does."""
        if store.backend.checkpoint is None or store.backend.checkpoint < self.start:
            store.backend.wipe()
            store.backend.write((), self.start)
        while store.backend.checkpoint < self.end:
            until = min(store.backend.checkpoint + chance.randrange(1, 20), self.end)
            rows = [row for row in self.rows if store.backend.checkpoint <= row[0] < until]
            updates = [(key, None if value is None else join(value, time)) for _, key, value, time in rows]
            store.backend.write(updates, until)
            store.restored()


@pytest.mark.parametrize("seed", seeds(15))
@pytest.mark.parametrize("kind", ["window", "session"])
def test_a_purged_changelog_restores_what_there_was(kind: str, seed: int, tmp_path: Path) -> None:
    """Over restarts with state on disk, with that of an earlier time and without any, and by a copy that
    reads along; with late records, deletions, and jumps of time.
    """
    chance = random.Random(seed)
    of = spec(kind, 3 * MINUTE, cached=seed % 3 > 0)
    log, now, turns = Changelog(), 0, 0
    store, copy = open_store(of, tmp_path / "0"), open_store(of, tmp_path / "copy")
    for step in range(200):
        now += chance.choice([0, 0, 1000, 30_000]) if chance.random() < 0.98 else 20 * MINUTE
        start = max(now - chance.randrange(4 * MINUTE), 0)
        put(store, chance.choice("abc"), start, None if chance.random() < 0.1 else step)
        if chance.random() < 0.2:
            log.commit(store)
        if chance.random() < 0.05:
            log.commit(store)
            clocks, before = store.clocks(), visible(store)
            store.close()
            turns += chance.random() < 0.5  # else it goes on with what is on disk
            store = open_store(of, tmp_path / str(turns))
            log.restore(store, chance)
            store.set_clocks(clocks)
            assert visible(store) == before
        if chance.random() < 0.05:
            log.restore(copy, chance)
    log.commit(store)
    log.restore(copy, chance)
    copy.set_clocks(store.clocks())
    assert visible(copy) == visible(store)
    for each in (store, copy):
        put(each, "z", now + 60 * MINUTE, 1)
        log.commit(each)
        assert len(list(each.backend.scan())) == 1
        each.close()


def put(store: Any, key: str, start: int, value: int | None) -> None:
    if isinstance(store, SessionStore):
        if start >= store.oldest:
            store.put(Windowed(key, Window(start, start + 500)), value)
    else:
        store.put(key, start, value)


def visible(store: Any) -> list[Any]:
    return list(store.all())


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("serde", [int, list])
def test_a_table_of_windows_is_read_as_far_back_before_a_restart_as_after_it(
    cached: bool, serde: Any, tmp_path: Path
) -> None:
    """Whatever memory or disk have. Without a cache that is the retention, with one the segments that are
    left, as far as they are whole.
    """
    settings = replace(spec(cached=cached), value_serde=serde)
    value = 1 if serde is int else [1]
    newest = 20 * MINUTE
    found_from = 10 * MINUTE if cached else 10 * MINUTE + 1
    times = [0, *(found_from + by for by in (-1, 0, 1)), newest]

    def read(store: Any) -> list[bool]:
        return [store.reader(window_key(b"k", time)) == (value, time) for time in times]

    with_restart, without = (open_store(settings, tmp_path / name) for name in ("with", "without"))
    for store in (with_restart, without):
        assert isinstance(store, WindowStore)
        for time in times:
            store.put("k", time, value, time)
        assert read(store) == [False, False, True, True, True], "before a commit"
        commit(store)
        assert read(store) == [False, False, True, True, True], "after a commit"
    clocks = with_restart.clocks()
    with_restart.close()
    again: Any = open_store(settings, tmp_path / "with")
    again.set_clocks(clocks)
    assert read(again) == read(without)
    without.shrink()
    assert read(again) == read(without)
    for store in (again, without):
        store.close()
