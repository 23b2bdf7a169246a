"""Reading a store from outside: page by page it is what a scan sees, and the store does not notice."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from streams.errors import InvalidStateStore
from streams.queries import reading
from streams.queries.query import (
    KeyQuery,
    MultiVersionedKeyQuery,
    Page,
    Query,
    RangeQuery,
    VersionedKeyQuery,
    WindowKeyQuery,
    WindowRangeQuery,
)
from streams.queries.reading import UnknownQuery, read
from streams.serdes import Window, Windowed
from streams.state import (
    CachedStore,
    KeyValueStore,
    SessionStore,
    StoreSpec,
    VersionedStore,
    WindowStore,
    open_store,
)
from streams.state.cache import join
from tests.support.depth import seeds

KEYS = ["", "a", "aa", "ab", "b", "b\x00", "c"]


def key_values(folder: Path | None, *, value: Any = int) -> KeyValueStore[str, Any]:
    store = open_store(StoreSpec(name="s", kind="key_value", key_serde=str, value_serde=value), folder)
    assert isinstance(store, KeyValueStore)
    return store


def versioned(folder: Path | None) -> VersionedStore[str, int]:
    options = {"history_retention_ms": 50, "segment_interval_ms": 10}
    spec = StoreSpec(name="v", kind="versioned_key_value", key_serde=str, value_serde=int, **options)
    store = open_store(spec, folder)
    assert isinstance(store, VersionedStore)
    return store


def commit(store: CachedStore) -> None:
    store.drain()
    store.written(1)


def all_rows(store: CachedStore, query: Any, **settings: Any) -> list[Any]:
    """Return the rows of all pages."""
    rows: list[Any] = []
    after = None
    while True:
        page: Page = read(store, query(**settings, after=after))
        rows += page.rows
        if page.next is None:
            return rows
        after = page.next


@pytest.mark.parametrize("seed", seeds(20))
@pytest.mark.parametrize("value", [int, dict])
def test_pages_are_what_a_scan_sees(
    seed: int, value: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is on disk, pending, changed since, or deleted; immutable values, and others."""
    monkeypatch.setattr(reading, "LOOKED_AT_MAX", 3)
    chance = random.Random(seed)
    store = key_values(tmp_path if seed % 2 else None, value=value)
    for number in range(30):
        new = None if chance.random() < 0.3 else (number if value is int else {"n": number})
        store.put(chance.choice(KEYS), new, number)
        if chance.random() < 0.2:
            commit(store)
        if chance.random() < 0.1:
            commit(store)
            store.shrink()
        if chance.random() < 0.1:
            store.drain()
            assert_like_a_scan(store, chance)
            store.written(number)
        assert_like_a_scan(store, chance)
    store.close()


def assert_like_a_scan(store: KeyValueStore[str, Any], chance: random.Random) -> None:
    lower, upper = sorted(chance.sample(KEYS, 2))
    dirty, entries = dict(store._entries.dirty), len(store._entries)
    limit = chance.randrange(1, 4)
    rows = all_rows(store, RangeQuery, lower=lower, upper=upper, limit=limit)
    backwards = all_rows(store, RangeQuery, lower=lower, upper=upper, limit=limit, descending=True)
    assert backwards == rows[::-1]
    assert all_rows(store, RangeQuery, descending=True) == all_rows(store, RangeQuery)[::-1]
    keys = {key: read(store, KeyQuery(key)) for key in KEYS}
    assert (store._entries.dirty, len(store._entries)) == (dirty, entries), "the cache is left as it was"
    assert [(row.key, row.value) for row in rows] == list(store.range(lower, upper))
    assert keys == {
        key: None if (value := store.get(key)) is None else (value, store.get_timestamp(key)) for key in KEYS
    }


def starts(store: CachedStore, key: str, **settings: Any) -> list[int]:
    """Return the starts of a key's windows."""
    rows = all_rows(store, lambda **more: WindowKeyQuery(key, **settings, **more))
    return [row.key.window.start for row in rows]


def test_windows_of_a_key_are_not_those_of_a_longer_one(tmp_path: Path) -> None:
    spec = StoreSpec(
        name="w", kind="window", key_serde=str, value_serde=int, window_size_ms=10, retention_ms=120_000
    )
    store = open_store(spec, tmp_path)
    assert isinstance(store, WindowStore)
    for start in (0, 10, 70_000):
        for key in ("a", "a\x00", "b"):
            store.put(key, start, start)
        commit(store)
    store.put("a", 20, 1)
    assert starts(store, "a") == starts(store, "a", limit=1) == [0, 10, 20, 70_000]
    assert starts(store, "a", time_from=10, time_to=20) == [10, 20]
    assert starts(store, "a", limit=2, descending=True) == [70_000, 20, 10, 0]
    everything = all_rows(store, WindowRangeQuery)
    assert all_rows(store, WindowRangeQuery, descending=True, limit=3) == everything[::-1]
    rows = all_rows(store, WindowRangeQuery, time_from=10, time_to=10, limit=1)
    assert {row.key for row in rows} == {Windowed(key, Window(10, 20)) for key in ("a", "a\x00", "b")}
    store.put("a", 300_000, 1)
    assert starts(store, "a") == [300_000], "the others are past retention"
    store.close()


def test_sessions_are_found_by_any_part_of_them() -> None:
    spec = StoreSpec(name="s", kind="session", key_serde=str, value_serde=int, retention_ms=100_000)
    store = open_store(spec, None)
    assert isinstance(store, SessionStore)
    for start, end in ((0, 5), (10, 30), (40, 40)):
        store.put(Windowed("a", Window(start, end)), end)
        store.put(Windowed("a\x00", Window(start, end)), end)

    def between(first: int, last: int) -> list[int]:
        return [row.value for row in read(store, WindowKeyQuery("a", first, last)).rows]

    assert [between(0, 100), between(6, 9), between(30, 40), between(5, 10)] == [
        [5, 30, 40],
        [],
        [30, 40],
        [5, 30],
    ]
    assert len(read(store, WindowRangeQuery(time_from=31)).rows) == 2


@pytest.mark.parametrize("seed", seeds(20))
def test_versions_are_what_the_store_itself_finds(seed: int, tmp_path: Path) -> None:
    """A query reads the same versions as the store: on disk, pending, changed since or expired. It leaves
    nothing in memory.
    """
    chance = random.Random(seed)
    store = versioned(tmp_path if seed % 2 else None)
    for number in range(40):
        time = number * 3 + chance.randrange(-20, 20)
        store.put(chance.choice(KEYS), chance.choice([None, number]), max(time, 0))
        if chance.random() < 0.2:
            commit(store)
        if chance.random() < 0.1:
            commit(store)
            store.shrink()
        key, first = chance.choice(KEYS), chance.randrange(number * 3 + 1)
        span = first, first + chance.randrange(60)
        in_memory = len(store._entries), store.key_times.bytes
        queries = [
            read(store, VersionedKeyQuery(key)),
            read(store, VersionedKeyQuery(key, first)),
            read(store, MultiVersionedKeyQuery(key, *span)),
            read(store, MultiVersionedKeyQuery(key)),
            read(store, MultiVersionedKeyQuery(key, descending=False)),
            read(store, MultiVersionedKeyQuery(key, limit=1)),
        ]
        assert (len(store._entries), store.key_times.bytes) == in_memory
        ever = list(store.versions(key))
        assert queries == [
            store.get(key),
            store.get(key, first),
            list(store.versions(key, *span)),
            ever,
            ever[::-1],
            ever[:1],
        ]
    store.close()


def test_a_copy_of_versions_answers_by_what_is_on_disk_now(tmp_path: Path) -> None:
    """A copy that is written below the cache, as a standby's, returns what is on disk."""
    store, running = versioned(tmp_path / "copy"), versioned(None)
    for number in range(3):
        running.put("a", number, 10 * number)
        running.drain()
        store.backend.write(
            [(key, join(data or b"", time)) for key, (data, time) in running.pending.items()], 1
        )
        running.written(1)
        assert read(store, VersionedKeyQuery("a")).value == number
        assert len(read(store, MultiVersionedKeyQuery("a"))) == number + 1
    store.close()


@pytest.mark.parametrize(
    ("query", "error", "message"),
    [
        (WindowKeyQuery("a"), UnknownQuery, r"store s \(key-value\) does not answer a WindowKeyQuery"),
        (VersionedKeyQuery("a"), UnknownQuery, "does not answer a VersionedKeyQuery: ask for a KeyQuery"),
        (KeyQuery(7), InvalidStateStore, "7 is no key of store s, whose keys are of String"),
        (RangeQuery(limit=0), InvalidStateStore, "a page of 0 rows of store s: limit is 1 or more"),
    ],
)
def test_what_does_not_fit_is_refused(query: Query, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        read(key_values(None), query)


def test_a_page_of_large_values_is_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "PAGE_BYTES_MAX", 1000)
    store = key_values(tmp_path, value=str)
    for _ in range(2):  # on the disk, and then in memory, where the mean of the last commit is what is known
        for key in "abcde":
            store.put(key, "x" * 600)
        if not store.backend.checkpoint:
            commit(store)
        assert [row.key for row in read(store, RangeQuery()).rows] == ["a", "b"]
        assert [row.key for row in all_rows(store, RangeQuery)] == list("abcde")
    store.close()


@pytest.mark.parametrize("on_disk", [False, True])
def test_entries_are_estimated(on_disk: bool, tmp_path: Path) -> None:
    store = key_values(tmp_path if on_disk else None)
    for number in range(10):
        store.put(str(number), number)
    commit(store)
    assert store.approximate_num_entries() == 10
    store.close()
