"""The cost of ranges and expiry. The story: a scan went over all keys changed since the last commit. Each
segment of stream time scanned the whole store. Both grew with the square of the size.

Cost is what can be counted: keys read of the backend, lines of the stores' code run.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import streams.state
from streams.errors import StateError
from streams.serdes import Long, String
from streams.state import KeyValueStore, MemoryBackend, StoreSpec, WindowStore, open_store
from streams.state.rocks import RocksBackend
from streams.state.segments import SegmentedBackend
from streams.state.sorted_keys import CHUNK_KEYS, SortedKeys
from streams.state.window_key import window_key

MINUTE = 60_000
CODE = str(Path(streams.state.__file__).parent)


def lines_run(work: Callable[[], object]) -> int:
    """Lines of `streams.state` that run in this call."""
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        if not frame.f_code.co_filename.startswith(CODE):
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


class CountingBackend(MemoryBackend):
    """Counts the keys read by scans."""

    read = 0

    def scan(
        self, lower: bytes | None = None, upper: bytes | None = None, *, backwards: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        for each in super().scan(lower, upper, backwards=backwards):
            self.read += 1
            yield each


def key_value_store(backend: MemoryBackend) -> KeyValueStore[str, int]:
    spec = StoreSpec(name="s", kind="key_value", key_serde=String(), value_serde=Long())
    return KeyValueStore(spec, backend)


def window_spec(retention: int) -> StoreSpec:
    return StoreSpec(
        name="w",
        kind="window",
        key_serde=String(),
        value_serde=Long(),
        window_size_ms=MINUTE,
        retention_ms=retention,
    )


def commit(store: Any, checkpoint: int = 0) -> dict[bytes, Any]:
    store.drain()
    pending = dict(store.pending)
    store.written(checkpoint)
    return pending


@pytest.mark.parametrize("committed", [False, True])
def test_a_scan_costs_what_it_finds(committed: bool) -> None:
    """Be the rest of the store in the cache, or in memory below it."""

    def cost(keys: int) -> int:
        store = key_value_store(MemoryBackend())
        for number in range(keys):
            store.put(f"{number:06}", number)
        if committed:
            commit(store)
        lower, upper = f"{keys - 10:06}", f"{keys:06}"
        assert len(list(store.range(lower, upper))) == 10  # what came before is put in order once
        store.put(upper, 1)
        return lines_run(lambda: store.range(lower, upper))

    assert cost(20_000) <= cost(200) + 20


def test_a_scan_sees_what_changed_since_the_last(tmp_path: Path) -> None:
    chance = random.Random(7)
    store = key_value_store(RocksBackend(tmp_path / "s"))  # type: ignore[arg-type]
    expected: dict[str, int] = {}
    for turn in range(300):
        for _ in range(chance.randrange(20)):
            key = f"{chance.randrange(500):03}"
            if chance.random() < 0.3:
                store.delete(key)
                expected.pop(key, None)
            else:
                store.put(key, turn)
                expected[key] = turn
        lower, upper = sorted(f"{chance.randrange(500):03}" for _ in range(2))
        rows = list(store.range(lower, upper))
        assert rows == sorted((k, v) for k, v in expected.items() if lower <= k <= upper)
        if chance.random() < 0.1:
            store.drain()
            assert list(store.all()) == sorted(expected.items())
            store.written(turn)
            store.shrink()
    store.close()


def test_a_listener_may_scan_the_store_it_hears_of() -> None:
    """Before all of it is pending some keys are in no place that a scan looks at."""
    store = key_value_store(MemoryBackend())
    scans: list[Any] = []
    store.listener = lambda changes: scans.append(list(store.all()))
    store.put("a", 1)
    store.put("b", 2)
    store.drain()
    assert scans == [[("a", 1), ("b", 2)]]


def test_sorted_keys_are_a_sorted_set() -> None:
    chance = random.Random(3)
    keys, expected = SortedKeys([b"%05d" % n for n in range(0, 9 * CHUNK_KEYS, 2)]), set[bytes]()
    expected.update(keys.range())
    assert len(expected) == 9 * CHUNK_KEYS // 2
    for _ in range(20_000):
        key = b"%05d" % chance.randrange(9 * CHUNK_KEYS)
        if chance.random() < 0.5:
            keys.add(key)
            expected.add(key)
        else:
            keys.remove(key)
            expected.discard(key)
    assert list(keys.range()) == sorted(expected)
    for _ in range(100):
        lower, upper = sorted(b"%05d" % chance.randrange(9 * CHUNK_KEYS) for _ in range(2))
        assert list(keys.range(lower, upper)) == sorted(key for key in expected if lower <= key < upper)
        assert list(keys.range(lower)) == sorted(key for key in expected if lower <= key)
    for key in sorted(expected):
        keys.remove(key)
    assert list(keys.range()) == []
    keys.remove(b"never there")
    keys.add(b"again")
    assert list(keys.range()) == [b"again"]


# -- segments


def test_a_window_store_goes_on_with_the_segments_on_disk(tmp_path: Path) -> None:
    for minutes in ((0, 9, 3), (11, 6)):
        store = open_store(window_spec(30 * MINUTE), tmp_path)
        assert isinstance(store, WindowStore)
        for minute in minutes:
            store.put("a", minute * MINUTE, minute)
        commit(store, minutes[0])
        store.close()
    store = open_store(window_spec(30 * MINUTE), tmp_path)
    assert isinstance(store, WindowStore)
    assert [value for _, value in store.fetch("a", 0, 30 * MINUTE)] == [0, 3, 6, 9, 11]
    assert [value for _, value in store.all()] == [0, 3, 6, 9, 11]
    assert store.backend.checkpoint == 11
    store.put("b", 100 * MINUTE, 1)
    assert len(commit(store, 12)) == 1
    assert [key for key, _ in store.backend.scan()] == [window_key(b"b", 100 * MINUTE)]
    store.close()


@pytest.mark.parametrize("before", [None, 60 * MINUTE], ids=["keys without segments", "other segments"])
def test_keys_that_were_laid_out_otherwise_are_restored(
    tmp_path: Path, before: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    """Written before there were segments, or with another retention."""
    if before is None:
        old = RocksBackend(tmp_path / "w")
        old.write([(window_key(b"a", 0), bytes(16))], 7)
        old.close()
    else:
        store = open_store(window_spec(before), tmp_path)
        store.update(window_key(b"a", 0), 1, 1)
        commit(store, 7)
        store.close()
    for expected in ("restoring it all", ""):
        caplog.clear()
        store = open_store(window_spec(10 * MINUTE), tmp_path)
        assert (store.backend.checkpoint, store.scan()) == (None, [])
        messages = "".join(
            record.getMessage() for record in caplog.records if record.name.startswith("streams.")
        )
        assert expected in messages and bool(messages) == bool(expected)
        store.close()


def test_a_key_of_another_kind_of_store_is_named() -> None:
    with pytest.raises(StateError, match=r"b'short' is not a window store's key.*another name"):
        SegmentedBackend(MemoryBackend(), MINUTE).write([(b"short", b"")], 1)
