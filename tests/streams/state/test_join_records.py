"""The records of a join's window store in memory."""

from typing import Any

import pytest

from streams.serdes import Json
from streams.state import JoinWindowStore, StoreSpec, open_store
from streams.state.join_records import JoinRecords

LAST = 2**63 - 1


class Store:
    """A store of immutable values without a backend."""

    protects_values = False

    def __init__(self) -> None:
        self.entries: dict[bytes, tuple[Any, int]] = {}

    def protected(self, key: bytes, value: Any) -> Any:
        raise AssertionError("the values are immutable")

    def exposed(self, safe_value: Any) -> Any:
        raise AssertionError("the values are immutable")

    def put_protected(self, stored_key: bytes, safe_value: Any, timestamp: int) -> None:
        self.entries[stored_key] = (safe_value, timestamp)

    def delete(self, stored_key: bytes, timestamp: int) -> None:
        self.entries[stored_key] = (None, timestamp)

    def lookup(self, stored_key: bytes) -> tuple[Any, int] | None:
        return self.entries.get(stored_key)

    def scan_key(self, key: bytes) -> set[bytes]:
        return set()

    def last_sequence(self) -> int:
        return 0


def records_at(*times: int) -> JoinRecords:
    records = JoinRecords(Store(), LAST)
    for time in times:
        records.add(b"k", f"v{time}", time)
    return records


@pytest.mark.parametrize(
    ("time_from", "time_to", "times"),
    [
        (0, LAST, [5, 7, LAST]),
        (-(2**70), 6, [5]),
        (6, 2**70, [7, LAST]),
        (-(2**63) - 1, 2**63, [5, 7, LAST]),
        (2**63, 2**64, []),
        (-(2**64), -(2**63) - 1, []),
        (LAST, LAST, [LAST]),
    ],
)
def test_ranges_beyond_64_bits_are_as_good_as_others(time_from: int, time_to: int, times: list[int]) -> None:
    """The window of a join may be longer than any timestamp. The compiled form raised OverflowError."""
    assert [time for time, _ in records_at(7, 5, LAST).find(b"k", time_from, time_to)] == times


def test_what_a_commit_leaves_out_never_reaches_the_store() -> None:
    store = Store()
    records = JoinRecords(store, 100)
    for time in (0, 50, 1000):
        records.add(b"k", f"v{time}", time)
    assert (records.unwritten, store.entries) == (3, {})
    records.write(901)
    assert records.unwritten == 0
    assert list(store.entries.values()) == [("v1000", 1000)]
    assert (records.take_before(901), len(records)) == ([], 1)


def test_what_a_query_has_seen_is_put_into_the_store_once() -> None:
    store = Store()
    records = JoinRecords(store, 100)
    records.add(b"k", "first", 1)
    records.show()
    (shown,) = store.entries
    store.entries.clear()
    records.add(b"k", "second", 2)
    records.write(0)
    assert list(store.entries.values()) == [("second", 2)]
    assert records.take_before(2) == [shown]


@pytest.mark.parametrize("reads_after", ["add", "commit", "shrink"])
def test_a_value_that_may_be_changed_is_kept_as_it_was_added(reads_after: str) -> None:
    spec = StoreSpec(
        name="s", kind="join_window", key_serde=Json(str), value_serde=Json(dict), cached=False,
        window_size_ms=100, retention_ms=100,
    )  # fmt: skip
    store = open_store(spec, None)
    assert isinstance(store, JoinWindowStore)
    value = {"n": 1}
    store.add(b"k", value, 5)
    value["n"] = 2
    if reads_after != "add":
        store.drain()
        store.written(1)
    if reads_after == "shrink":
        store.shrink()
    for _ in range(2):
        ((time, safe_value),) = store.find(b"k", 0, 10)
        assert (time, safe_value) == (5, {"n": 1})
        safe_value["n"] = 3
    store.close()
