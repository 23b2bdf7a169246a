"""Session stores over both backends: what is found, what a commit makes of it, and what is forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streams import Processor, ProcessorContext, Record, StreamsBuilder
from streams.errors import StateError, TopologyError
from streams.serdes import Long, String, Window, Windowed
from streams.state import MemoryBackend, SessionStore, StoreSpec, WindowStore, open_store
from streams.state.session_key import session_key
from streams.state.window_key import window_key
from streams.testing import TopologyTestDriver

MINUTE = 60_000


def spec(**changes: Any) -> StoreSpec:
    values: dict[str, Any] = {"retention_ms": 10 * MINUTE, "key_serde": String(), "value_serde": Long()}
    return StoreSpec(name="s", kind="session", **{**values, **changes})


@pytest.fixture(params=["memory", "rocks"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SessionStore[str, int]]:
    opened = open_store(spec(), tmp_path if request.param == "rocks" else None)
    assert isinstance(opened, SessionStore)
    yield opened
    opened.close()


def session(key: str, start: int, end: int) -> Windowed[str]:
    return Windowed(key, Window(start, end))


def commit(store: Any, checkpoint: int = 1) -> dict[bytes, tuple[bytes | None, int]]:
    store.drain()
    pending = dict(store.pending)
    store.written(checkpoint)
    store.shrink()
    return pending


def test_sessions_are_found_by_their_ends_and_starts(store: SessionStore[str, int]) -> None:
    sessions = {("a", 0, 10): 1, ("a", 5, 7): 2, ("ab", 0, 10): 3, ("a", 20, 30): 4, ("b", 6, 6): 5}
    for (key, start, end), value in sessions.items():
        store.put(session(key, start, end), value)
    for checkpoint in (1, 2):
        assert list(store.fetch("a")) == [(Window(5, 7), 2), (Window(0, 10), 1), (Window(20, 30), 4)]
        assert list(store.find_sessions("a", 8, 19)) == [(Window(0, 10), 1)]
        assert list(store.find_sessions("a", 10, 20)) == [(Window(0, 10), 1), (Window(20, 30), 4)]
        assert list(store.find_sessions("c", 0, 99)) == []
        assert store.fetch_session("ab", 0, 10) == 3
        assert store.fetch_session("ab", 0, 9) is None
        assert len(list(store.all())) == 5
        commit(store, checkpoint)
    store.remove(session("a", 0, 10))
    store.put(session("a", 5, 7), None)
    assert list(store.fetch("a")) == [(Window(20, 30), 4)]
    assert commit(store, 3) == {session_key(b"a", 0, 10): (None, 10), session_key(b"a", 5, 7): (None, 7)}
    assert list(store.fetch("a")) == [(Window(20, 30), 4)]
    windowed = next(store.all())[0]
    assert store.decode_key(store.encode_key(windowed)) == windowed


def test_the_changelog_has_kafkas_keys(store: SessionStore[str, int]) -> None:
    store.put(session("a", 3, 7), 1, timestamp=9)
    key = b"a" + (7).to_bytes(8, "big") + (3).to_bytes(8, "big")
    assert commit(store) == {key: ((1).to_bytes(8, "big"), 9)}


def test_a_session_that_grew_between_two_commits_leaves_nothing_behind(store: SessionStore[str, int]) -> None:
    for end in range(10):
        if end:
            store.remove(session("a", 0, end - 1))
        store.put(session("a", 0, end), end)
    assert list(commit(store)) == [session_key(b"a", 0, 9)]
    store.remove(session("a", 0, 9))
    store.put(session("a", 0, 20), 20)
    assert list(store.all()) == [(session("a", 0, 20), 20)], "a scan follows what was forgotten"
    store.remove(session("a", 0, 20))
    store.put(session("a", 0, 9), 9)
    store.remove(session("a", 0, 9))
    assert commit(store, 2) == {session_key(b"a", 0, 9): (None, 9)}, "the changelog had it"
    assert list(store.fetch("a")) == []


def test_sessions_past_retention_are_gone_and_nothing_is_said_of_it() -> None:
    store: SessionStore[str, int] = SessionStore(spec(retention_ms=2 * MINUTE), MemoryBackend())
    pending: dict[bytes, Any] = {}
    for number in range(6):
        store.put(session("a", 0, number * MINUTE), number)
        store.put(session("b", number * MINUTE, number * MINUTE), number)
        pending = commit(store, number)
    assert all(value is not None for value, _ in pending.values())
    assert [key.window.end // MINUTE for key, _ in store.all() if key.key == "a"] == [4, 5]
    assert store.fetch_session("b", 3 * MINUTE, 3 * MINUTE) is None
    assert [value for _, value in store.fetch("b")] == [3, 4, 5], (
        "the first is past retention, not its segment"
    )


def test_a_session_store_without_a_cache_finds_nothing_past_retention() -> None:
    store: SessionStore[str, int] = SessionStore(spec(retention_ms=2 * MINUTE, cached=False), MemoryBackend())
    for number in range(6):
        store.put(session("b", number * MINUTE, number * MINUTE), number)
    assert [value for _, value in store.fetch("b")] == [4, 5]


def test_a_session_store_goes_on_with_what_is_on_disk(tmp_path: Path) -> None:
    first = open_store(spec(by_time=True), tmp_path)
    assert isinstance(first, SessionStore)
    first.put(session("a", 3, 7), 1)
    first.put(session("b", 1, 9 * MINUTE), 2)
    first.stream_time, first.emitted_to = 10 * MINUTE, 5
    commit(first, 5)
    clocks = first.clocks()
    first.close()
    again = open_store(spec(by_time=True), tmp_path)
    assert isinstance(again, SessionStore)
    again.set_clocks(clocks)
    assert again.backend.checkpoint == 5
    assert (again.stream_time, again.newest, again.emitted_to) == (10 * MINUTE, 9 * MINUTE, 5)
    assert list(again.fetch("a")) == [(Window(3, 7), 1)]
    assert again.closed(0, 10 * MINUTE) == [session_key(b"a", 3, 7), session_key(b"b", 1, 9 * MINUTE)]
    assert again.closed(8, 10 * MINUTE) == [session_key(b"b", 1, 9 * MINUTE)]
    assert len(list(again.all())) == 2, "entries by time are no sessions"
    again.close()


def test_what_closed_is_found_wherever_it_is() -> None:
    window = {"kind": "window", "window_size_ms": 10, "by_time": True}
    store: WindowStore[str, int] = WindowStore(
        StoreSpec(name="w", key_serde=String(), value_serde=Long(), retention_ms=MINUTE, **window),  # type: ignore[arg-type]
        MemoryBackend(),
    )

    def put(key: str, start: int) -> None:
        store.put(key, start, 1)
        store.recent.setdefault(start, {})[window_key(key.encode(), start)] = None

    put("b", 10)
    commit(store)
    put("b", 0)
    put("a", 10)
    store.drain()
    put("a", 0)
    put("c", 20)
    keys = [window_key(key, start) for key, start in ((b"a", 0), (b"b", 0), (b"a", 10), (b"b", 10))]
    assert store.closed(0, 19) == keys
    assert store.closed(5, 15) == keys[2:]


class Sessions(Processor[str, int]):
    """Adds to the session that a record is in, of 10 ms at most between two."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.store: Any = context.store("s")

    def process(self, record: Record[str, int]) -> None:
        start = end = record.timestamp
        total = record.value
        for window, value in list(self.store.find_sessions(record.key, start - 10, end + 10)):
            self.store.remove(Windowed(record.key, window))
            start, end, total = min(start, window.start), max(end, window.end), total + value
        self.store.put(session(record.key, start, end), total)


def test_a_processor_may_use_a_session_store() -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    builder.add_store(spec())
    builder.stream("in").process(Sessions, stores=["s"]).to("out")
    with TopologyTestDriver(builder) as driver:
        for value, timestamp in ((1, 0), (2, 20), (4, 9), (8, 60), (16, 12)):
            driver.input_topic("in").pipe_input("a", value, timestamp)
        sessions = driver.session_store("s").fetch("a")
        assert list(sessions) == [(Window(0, 20), 23), (Window(60, 60), 8)]


def test_stores_of_windows_say_how_long_they_are_kept() -> None:
    with pytest.raises(TopologyError, match="store s: say how long its windows are kept, in retention_ms="):
        StreamsBuilder().add_store(spec(retention_ms=0))


def test_another_kind_of_store_under_the_name_is_told(store: SessionStore[str, int]) -> None:
    with pytest.raises(StateError, match="was another kind of store kept under this name"):
        store.backend.write([(b"short", b"value")], 1)
