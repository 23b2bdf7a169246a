"""Stores over both backends: what a commit makes of them, and what a crash leaves."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streams.errors import SerializationError
from streams.serdes import Json, Long, String, Windowed
from streams.state import Backend, KeyValueStore, MemoryBackend, StoreSpec, WindowStore
from streams.state.rocks import RocksBackend
from streams.state.window_key import window_key

MakeBackend = Callable[[], Backend]


@pytest.fixture(params=["memory", "rocks"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    made: Backend = MemoryBackend() if request.param == "memory" else RocksBackend(tmp_path / "store")
    yield made
    made.close()


def key_value_store(backend: Backend) -> KeyValueStore[str, int]:
    spec = StoreSpec(name="s", kind="key_value", key_serde=String(), value_serde=Long())
    return KeyValueStore(spec, backend)


def commit(store: Any, checkpoint: int) -> dict[bytes, tuple[bytes | None, int]]:
    store.drain()
    pending = dict(store.pending)
    store.written(checkpoint)
    store.shrink()
    return pending


def test_backend_holds_sorted_bytes_and_a_checkpoint(backend: Backend) -> None:
    assert backend.checkpoint is None
    backend.write([(b"b", b"2"), (b"a", b"1"), (b"", b"0"), (b"b", None), (b"c", b"3")], 7)
    assert backend.checkpoint == 7
    assert backend.get(b"b") is None
    assert backend.get(b"a") == b"1"
    assert list(backend.scan()) == [(b"", b"0"), (b"a", b"1"), (b"c", b"3")]
    assert list(backend.scan(b"a", b"c")) == [(b"a", b"1")]
    backend.wipe()
    assert (backend.checkpoint, backend.origin, list(backend.scan())) == (None, None, [])
    backend.wipe(b"id")
    assert (backend.checkpoint, backend.origin, list(backend.scan())) == (None, b"id", [])


def test_keys_are_in_order_whenever_that_is_asked_for_first(backend: Backend) -> None:
    drawn, model = random.Random(5), dict[bytes, bytes]()
    for step in range(60):
        updates = [(b"%d" % drawn.randrange(50), drawn.choice((None, b"%d" % step))) for _ in range(8)]
        dropped = [(b"2", b"3")] if step % 20 == 11 else []
        backend.write(updates, step, None, dropped)
        model = {key: value for key, value in model.items() if not (dropped and b"2" <= key < b"3")}
        model |= {key: value for key, value in updates if value is not None}
        for key in {key for key, value in dict(updates).items() if value is None}:
            model.pop(key, None)
        if step > 9:
            assert list(backend.scan()) == sorted(model.items())
            assert list(backend.scan(b"2", b"4", backwards=True)) == sorted(
                ((key, value) for key, value in model.items() if b"2" <= key < b"4"), reverse=True
            )
        if step == 40:
            backend.wipe()
            model.clear()


def test_rocks_killed_while_wiped_begins_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """RocksDB does not open a folder in which CURRENT names a manifest that is gone."""

    def killed(folder: Path) -> None:
        next(folder.glob("MANIFEST-*")).unlink()
        raise KeyboardInterrupt

    first = RocksBackend(tmp_path / "store")
    first.write([(b"a", b"1")], 5)
    with monkeypatch.context() as patched:
        patched.setattr("streams.state.rocks.shutil.rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            first.wipe(b"id")
    del first  # as the process does
    again = RocksBackend(tmp_path / "store")
    assert (again.checkpoint, list(again.scan())) == (None, [])
    again.close()
    assert [each.name for each in tmp_path.iterdir()] == ["store"]


def test_rocks_comes_back_after_a_clean_close(tmp_path: Path) -> None:
    first = RocksBackend(tmp_path / "store")
    first.wipe(b"id")
    first.write([(b"a", b"1")], 5)
    first.close()
    first.close()
    again = RocksBackend(tmp_path / "store")
    assert (again.checkpoint, again.origin, again.get(b"a")) == (5, b"id", b"1")
    again.close()


def test_key_value_store(backend: Backend) -> None:
    store = key_value_store(backend)
    store.put("b", 2, 20)
    store.put("a", 1, 10)
    store.put("c", 3)
    assert (store.get("b"), store.get_timestamp("b"), store.get("x")) == (2, 20, None)
    assert list(store.all()) == [("a", 1), ("b", 2), ("c", 3)]
    assert list(store.range("a", "b")) == [("a", 1), ("b", 2)]
    commit(store, 3)
    store.delete("b")
    assert list(store.all()) == [("a", 1), ("c", 3)]
    assert list(key_value_store(backend).all()) == [("a", 1), ("b", 2), ("c", 3)], "not committed yet"
    assert commit(store, 4) == {b"b": (None, 0)}
    assert store.get_timestamp("a") == 10
    assert list(key_value_store(backend).all()) == [("a", 1), ("c", 3)]


def test_values_of_another_serde_are_the_stores_not_the_records_fault(backend: Backend) -> None:
    """Values that another topology left under the same name raise an error that names the store."""
    store = key_value_store(backend)
    store.put("a", 1)
    commit(store, 3)
    spec = StoreSpec(name="s", kind="key_value", key_serde=String(), value_serde=Json(dict))
    with pytest.raises(SerializationError, match="store s holds a value its serde does not read"):
        KeyValueStore(spec, backend).get("a")


def test_a_commit_takes_the_last_value_of_each_key_once(backend: Backend) -> None:
    store = key_value_store(backend)
    changes: list[Any] = []
    store.listener = changes.extend
    for number in range(5):
        store.put("a", number, number)
    assert store.needs_drain
    assert commit(store, 1) == {b"a": ((4).to_bytes(8, "big"), 4)}
    assert changes == [(b"a", 4, None, 4, ())]
    assert not store.needs_drain
    assert commit(store, 1) == {}


def test_a_listener_hears_what_a_key_had_at_the_last_commit(backend: Backend) -> None:
    store = key_value_store(backend)
    changes: list[Any] = []
    store.listener, store.tells_old_values = changes.extend, True
    store.put("a", 1, 1)
    store.put("a", 2, 2)
    store.drain()
    store.put("a", 3, 3)
    store.drain()  # before the one before is written
    store.written(1)
    store.put("a", None, 4)
    commit(store, 2)
    assert [(new, old) for _, new, old, _, _ in changes] == [(2, None), (3, 2), (None, 3)]


def test_what_is_found_absent_for_a_listener_is_known_to_be_new(backend: Backend) -> None:
    store = key_value_store(backend)
    store.listener, store.tells_old_values = [].extend, True
    backend.write([(b"b", bytes(16))], 1)
    for key in "ab":
        store.put(key, 1, 1)
    store.drain()
    assert store.pending_new == {b"a"}
    store.put("a", None, 2)
    store.put("c", 1, 2)
    store.drain()  # before the one before is written
    assert store.pending_new == {b"a", b"c"}
    store.written(2)
    for key in "abc":
        store.put(key, 3, 3)
    store.drain()
    assert store.pending_new == {b"a"}


def test_the_last_change_decides_order_and_headers(backend: Backend) -> None:
    store = key_value_store(backend)
    changes: list[Any] = []
    store.listener = changes.extend
    for key, headers in [("a", ()), ("b", (("h", b"1"),)), ("a", (("h", b"2"),))]:
        store.update(key.encode(), 1, 0, headers)
        assert [each for each, _ in store.all()] == sorted({key, *(each for each, _ in store.all())})
    assert list(commit(store, 1)) == [b"b", b"a"]
    assert [(key, headers) for key, _, _, _, headers in changes] == [
        (b"b", (("h", b"1"),)),
        (b"a", (("h", b"2"),)),
    ]


def test_a_table_does_not_tell_that_what_never_was_is_gone(backend: Backend) -> None:
    store = key_value_store(backend)
    changes: list[Any] = []
    store.listener, store.is_table = changes.extend, True
    store.put("a", 1)
    store.put("a", None)
    assert commit(store, 1) == {}
    store.put("a", 1)
    commit(store, 2)
    store.put("a", None, 5)
    assert commit(store, 3) == {b"a": (None, 5)}
    assert [new for _, new, _, _, _ in changes] == [1, None]


def test_what_is_drained_and_not_written_can_still_be_read(backend: Backend) -> None:
    store = key_value_store(backend)
    store.put("a", 1)
    store.drain()
    store.put("b", 2)
    assert list(store.all()) == [("a", 1), ("b", 2)]
    assert backend.get(b"a") is None
    store.written(1)
    assert backend.get(b"a") is not None
    assert backend.get(b"b") is None


def test_repairs_are_written_to_the_changelog_again_before_anything_else(backend: Backend) -> None:
    backend.write([(b"a", (7).to_bytes(8, "big") + (1).to_bytes(8, "big"))], 1)
    store = key_value_store(backend)
    changes: list[Any] = []
    store.listener = changes.extend
    store.repair([b"a", b"gone"])
    store.put("b", 2, 9)
    pending = commit(store, 2)
    assert pending == {
        b"a": ((1).to_bytes(8, "big"), 7),
        b"gone": (None, 0),
        b"b": ((2).to_bytes(8, "big"), 9),
    }
    assert list(pending)[-1] == b"b"
    assert changes == [(b"b", 2, None, 9, ())], "nobody downstream hears of repairs"


def test_cache_bytes_grow_with_entries_and_go_with_a_shrink(backend: Backend) -> None:
    store = key_value_store(backend)
    for number in range(100):
        store.put(f"k{number}", number)
    full = store.cache_bytes
    assert full > 100 * 100
    store.shrink()
    assert store.cache_bytes == full, "what is not committed stays"
    commit(store, 1)
    assert store.cache_bytes == 0


def window_store(backend: Backend, retention: int = 600_000) -> WindowStore[str, dict[str, int]]:
    spec = StoreSpec(
        name="w",
        kind="window",
        key_serde=String(),
        value_serde=Json(dict),
        window_size_ms=60_000,
        retention_ms=retention,
    )
    return WindowStore(spec, backend)


def test_window_store_keeps_a_keys_windows_in_order(backend: Backend) -> None:
    store = window_store(backend)
    for key, start in (("a", 120_000), ("a", 0), ("ab", 60_000), ("a", 60_000), ("b", 0)):
        assert store.put(key, start, {"at": start})
    for checkpoint in (1, 2):
        assert [w.start for w, _ in store.fetch("a", 0, 120_000)] == [0, 60_000, 120_000]
        assert [w.start for w, _ in store.fetch("a", 1, 119_999)] == [60_000]
        assert store.get("ab", 60_000) == {"at": 60_000}
        assert len(list(store.all())) == 5
        commit(store, checkpoint)
    windowed = next(store.all())[0]
    assert isinstance(windowed, Windowed)
    assert store.decode_key(store.encode_key(windowed)) == windowed


def test_expired_windows_are_gone_and_nothing_is_said_of_it(backend: Backend) -> None:
    store = window_store(backend, retention=120_000)
    for number in range(5):
        store.put("a", number * 60_000, {"n": number})
        pending = commit(store, number)
        assert store.get("a", (number - 2) * 60_000) is None
        assert not store.put("a", (number - 2) * 60_000, {"late": 1})
    assert pending.keys() == {window_key(b"a", 240_000)}
    live = [120_000, 180_000, 240_000]  # the first is past retention, but its segment is not
    assert [key for key, _ in store.backend.scan()] == [window_key(b"a", start) for start in live]
    assert [window.start for window, _ in store.fetch("a", 0, 240_000)] == live[1:]
