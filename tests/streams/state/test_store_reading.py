"""Processors' reads of stores besides one key: ranges, prefixes, and from the last to the first.

Each is held against a dict, over both backends, with everything in the cache, on the disk, and half and half.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from streams.errors import SerializationError
from streams.serdes import Long, String, Window, Windowed
from streams.state import KeyValueStore, SessionStore, StoreSpec, WindowStore, open_store

ZEROS = "a" + 6 * "\x00", "a" + 8 * "\x00"
KEYS = ("", "a", "a\x00", *ZEROS, "ab", "b", "b\x7f", "é", "z")
"""Keys, some of which are prefixes of others, followed by bytes with which times begin."""
BOUNDS = (None, "", "a", *ZEROS, "aa", "b", "é", "zz")
RANGES = list(product(BOUNDS, BOUNDS))
Change = Callable[[], None]


@pytest.fixture(params=["memory", "rocks"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return tmp_path if request.param == "rocks" else None


def opened(kind: Any, folder: Path | None) -> Any:
    return open_store(
        StoreSpec(
            name="s",
            kind=kind,
            key_serde=String(),
            value_serde=Long(),
            retention_ms=0 if kind == "key_value" else 100_000,
            window_size_ms=10 if kind == "window" else 0,
        ),
        folder,
    )


def commit(store: Any) -> None:
    store.drain()
    store.written(1)
    store.shrink()


def states(store: Any, changes: list[Change]) -> Iterator[None]:
    """Yield with all changes in the cache, on disk, and half in each."""
    half = len(changes) // 2
    for change in changes[:half]:
        change()
    commit(store)
    for change in changes[half:]:
        change()
    yield
    store.drain()
    yield
    store.written(2)
    store.shrink()
    yield
    store.close()


def between(lower: str | None, upper: str | None) -> list[str]:
    raw = [(key.encode(), key) for key in KEYS]
    first = b"" if lower is None else lower.encode()
    return [key for data, key in sorted(raw) if first <= data and (upper is None or data <= upper.encode())]


def void(result: Any) -> None:
    """Let a function with a result be a `Change`."""


def reversed_(rows: Iterator[Any]) -> list[Any]:
    return list(rows)[::-1]


# -- key-value stores


def test_keys_in_ranges_and_by_prefix(folder: Path | None) -> None:
    store: KeyValueStore[str, int] = opened("key_value", folder)
    changes: list[Change] = [lambda n=n, key=key: store.put(key, n) for n, key in enumerate(KEYS)]  # type: ignore[misc]
    changes += [lambda: store.put("gone", 1), lambda: store.put("a", 10), lambda: store.delete("gone")]
    model = {key: n for n, key in enumerate(KEYS)} | {"a": 10}
    for _ in states(store, changes):
        for lower, upper in RANGES:
            expected = [(key, model[key]) for key in between(lower, upper)]
            assert list(store.range(lower, upper)) == expected, (lower, upper)
            assert list(store.reverse_range(lower, upper)) == expected[::-1], (lower, upper)
        for prefix in ("", "a", "a\x00", "b", "x", "é"):
            expected = [(key, model[key]) for key in between(None, None) if key.startswith(prefix)]
            assert list(store.prefix_scan(prefix)) == expected, prefix
        assert list(store.prefix_scan(b"\xc3", bytes)) == [("é", model["é"])]
        assert list(store.reverse_all()) == reversed_(store.all()) == reversed_(store.range())


@pytest.mark.parametrize("prefix", [b"", b"\xff", b"\xff\xff", b"\x01\xff", b"\x01"])
def test_prefixes_that_end_with_the_last_byte(prefix: bytes) -> None:
    store: KeyValueStore[bytes, int] = open_store(  # type: ignore[assignment]
        StoreSpec(name="s", kind="key_value", key_serde=bytes, value_serde=int), None
    )
    keys = [
        b"",
        b"\x01",
        b"\x01\xfe",
        b"\x01\xff",
        b"\x01\xff\x00",
        b"\x02",
        b"\xff",
        b"\xff\x01",
        b"\xff\xff",
    ]
    store.put_all((key, 1) for key in keys)
    assert [key for key, _ in store.prefix_scan(prefix)] == [key for key in keys if key.startswith(prefix)]


def test_a_store_may_be_changed_while_its_keys_are_gone_through(folder: Path | None) -> None:
    store: KeyValueStore[str, int] = opened("key_value", folder)
    store.put_all([("a", 1), ("b", 2), ("c", None)], 7)
    commit(store)
    for read in (store.all, store.reverse_all, store.range, store.reverse_range):
        before, values = dict(store.all()), {}
        for key, value in read():
            values[key] = value
            for other in ("a", "b"):
                store.put(other, 10 + len(values))
        assert values == before
    store.close()


def test_what_is_there_is_not_put_again(folder: Path | None) -> None:
    store: KeyValueStore[str, int] = opened("key_value", folder)
    store.now = lambda: 5
    assert store.put_if_absent("a", 1) is None
    commit(store)
    assert store.put_if_absent("a", 2, 9) == 1
    assert store.put_if_absent("b", None) is None
    assert (store.get("a"), store.get_timestamp("a"), store.get("b")) == (1, 5, None)
    store.delete("a")
    assert store.put_if_absent("a", 3, 9) is None
    assert (store.get("a"), store.get_timestamp("a")) == (3, 9)
    store.close()


def test_put_all_puts_at_one_time(folder: Path | None) -> None:
    store: KeyValueStore[str, int] = opened("key_value", folder)
    store.put_all([("a", 1), ("b", 2), ("a", 3), ("b", None)], 7)
    assert (list(store.all()), store.get_timestamp("a")) == ([("a", 3)], 7)
    with pytest.raises((SerializationError, ValueError)):
        store.put_all([("a", "x")])  # type: ignore[list-item]
        store.drain()
    store.close()


def test_about_how_many_there_are(folder: Path | None) -> None:
    store: KeyValueStore[str, int] = opened("key_value", folder)
    assert store.approximate_num_entries() == 0
    store.put_all((str(n), n) for n in range(100))
    assert store.approximate_num_entries() == 0, "what is not committed does not count"
    commit(store)
    assert store.approximate_num_entries() == 100
    store.close()


# -- windows

STARTS = (0, 10, 500, 70_000)


def test_windows_of_ranges_of_keys_and_times(folder: Path | None) -> None:
    store: WindowStore[str, int] = opened("window", folder)
    windows = list(product(KEYS, STARTS))
    changes: list[Change] = [
        lambda n=n, key=key, start=start: void(store.put(key, start, n))  # type: ignore[misc]
        for n, (key, start) in enumerate(windows)
    ]
    changes.append(lambda: void(store.put("b", 10, None)))
    model = {window: n for n, window in enumerate(windows) if window != ("b", 10)}

    def expected(lower: str | None, upper: str | None, first: int, last: int) -> set[tuple[Any, int]]:
        keys = set(between(lower, upper))
        return {
            (Windowed(key, Window(start, start + 10)), n)
            for (key, start), n in model.items()
            if key in keys and first <= start <= last
        }

    for _ in states(store, changes):
        for lower, upper in RANGES:
            for first, last in ((0, 10), (10, 70_000), (501, 69_999)):
                rows = list(store.fetch_range(lower, upper, first, last))
                assert len(rows) == len(set(rows))
                assert set(rows) == expected(lower, upper, first, last), (lower, upper, first, last)
                backward = list(store.backward_fetch_range(lower, upper, first, last))
                assert backward == rows[::-1]
        for key in KEYS:
            fetched = list(store.fetch(key, 10, 500))
            assert list(store.backward_fetch(key, 10, 500)) == fetched[::-1]
        assert set(store.fetch_all(10, 500)) == expected(None, None, 10, 500)
        assert list(store.backward_fetch_all(10, 500)) == reversed_(store.fetch_all(10, 500))
        assert set(store.all()) == expected(None, None, 0, 70_000)
        assert list(store.backward_all()) == reversed_(store.all())


def test_windows_past_retention_are_in_no_range() -> None:
    store: WindowStore[str, int] = opened("window", None)
    store.put("a", 0, 1)
    store.put("a", 100_001, 2)
    (rows,) = store.fetch_range("a", "a")
    assert rows == (Windowed("a", Window(100_001, 100_011)), 2)
    assert list(store.backward_fetch_all(0, 200_000)) == [rows]


# -- sessions


def test_sessions_of_ranges_of_keys_and_times(folder: Path | None) -> None:
    store: SessionStore[str, int] = opened("session", folder)
    sessions = [
        Windowed(key, window) for key in KEYS for window in (Window(0, 5), Window(3, 50), Window(60, 60))
    ]
    changes: list[Change] = [
        lambda n=n, session=session: store.put(session, n)  # type: ignore[misc]
        for n, session in enumerate(sessions)
    ]
    deleted = Windowed("b", Window(3, 50))
    changes.append(lambda: store.remove(deleted))
    model = {session: n for n, session in enumerate(sessions) if session != deleted}
    for _ in states(store, changes):
        for lower, upper in RANGES:
            for end, start in ((0, 100), (6, 59), (51, 2)):
                rows = list(store.find_sessions_range(lower, upper, end, start))
                keys = set(between(lower, upper))
                assert len(rows) == len(set(rows))
                assert set(rows) == {
                    (each, n)
                    for each, n in model.items()
                    if each.key in keys and each.window.end >= end and each.window.start <= start
                }, (lower, upper, end, start)
                backward = list(store.backward_find_sessions_range(lower, upper, end, start))
                assert backward == rows[::-1]
            fetched = list(store.fetch_range(lower, upper))
            assert fetched == list(store.find_sessions_range(lower, upper, 0, 100))
            assert list(store.backward_fetch_range(lower, upper)) == fetched[::-1]
        for key in KEYS:
            assert list(store.backward_fetch(key)) == reversed_(store.fetch(key))
            assert list(store.backward_find_sessions(key, 6, 59)) == reversed_(
                store.find_sessions(key, 6, 59)
            )
