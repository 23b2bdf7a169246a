"""Joins of two streams against a brute-force model, their stores over commits and restarts, and their errors.

What Kafka's own write, record by record, is held in test_rules.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streams import Joined, JoinWindows, StreamJoined, StreamsBuilder, TopologyError
from streams.dsl.arity import joiner_takes_key
from streams.serdes import Json, String
from streams.state import JoinWindowStore, OuterJoinStore, StoreSpec, join_window, open_store
from streams.state.outer_join import TIME_AND_SIDE, UnmatchedKeys, UnmatchedValues
from streams.state.window_key import window_start
from streams.testing import TopologyTestDriver
from streams.topology import partition_counts
from tests.support import depth

BEFORE, AFTER, GRACE = 10, 6, 5
WINDOWS = JoinWindows(before=BEFORE, after=AFTER, grace=GRACE)
END = 10_000


class Event(NamedTuple):
    side: str
    key: str
    value: str
    timestamp: int


@st.composite
def histories(draw: st.DrawFn) -> list[Event]:
    """Records no more out of order than is allowed for, with two per time at times."""
    parts = st.tuples(st.sampled_from("lr"), st.sampled_from("ab"), st.integers(0, 9), st.integers(0, GRACE))
    now, events = GRACE, []
    for number, (side, key, step, late) in enumerate(draw(st.lists(parts, max_size=40))):
        now += step
        events.append(Event(side, key, str(number), now - late))
    return events


def expected(events: list[Event], kind: str) -> Counter[tuple[Any, ...]]:
    """Return every pair whose times fit, and for outer joins the records in no pair."""
    lefts = [each for each in events if each.side == "l"]
    rights = [each for each in events if each.side == "r"]
    pairs = [
        (left, right)
        for left in lefts
        for right in rights
        if left.key == right.key and -BEFORE <= right.timestamp - left.timestamp <= AFTER
    ]
    pairs_and_singles: Counter[tuple[Any, ...]] = Counter(
        (left.key, left.value, right.value, max(left.timestamp, right.timestamp)) for left, right in pairs
    )
    met = {each for pair in pairs for each in pair}
    if kind != "join":
        pairs_and_singles.update(
            (each.key, each.value, None, each.timestamp) for each in lefts if each not in met
        )
    if kind == "outer_join":
        pairs_and_singles.update(
            (each.key, None, each.value, each.timestamp) for each in rights if each not in met
        )
    return pairs_and_singles


@pytest.mark.parametrize("kind", ["join", "left_join", "outer_join"])
@settings(max_examples=depth.times(80))
@given(events=histories())
def test_pairs_are_those_of_a_brute_force_join(kind: str, events: list[Event]) -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    left, right = builder.stream("l"), builder.stream("r")
    getattr(left, kind)(right, lambda x, y: [x, y], windows=WINDOWS).to("out", value_serde=list)
    with TopologyTestDriver(builder) as driver:
        for side, key, value, timestamp in events:
            driver.input_topic(side).pipe_input(key, value, timestamp)
        driver.input_topic("l").pipe_input("end", "", END)
        records = driver.output_topic("out").read_all()
    output = Counter((record.key, *record.value, record.timestamp) for record in records)
    assert output == expected(events, kind)


def test_results_have_the_headers_of_the_record_that_made_them() -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    builder.stream("l").left_join(builder.stream("r"), lambda x, y: f"{x}{y}", windows=WINDOWS).to("out")
    with TopologyTestDriver(builder) as driver:
        driver.input_topic("l").pipe_input("a", "1", 1, headers=(("of", b"left"),))
        driver.input_topic("r").pipe_input("a", "2", 2, headers=(("of", b"right"),))
        driver.input_topic("l").pipe_input("b", "3", 3)
        driver.input_topic("l").pipe_input("c", "4", 50, headers=(("of", b"the last"),))
        records = driver.output_topic("out").read_all()
    assert [(each.value, each.headers) for each in records] == [
        ("12", (("of", b"right"),)),
        ("3None", (("of", b"the last"),)),
    ]


def test_a_joiner_cannot_change_what_is_kept() -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=dict)

    def spoil(left: dict[str, int], right: dict[str, int]) -> dict[str, int]:
        left["n"] += right["n"]
        right["n"] = 0
        return left

    builder.stream("l").join(builder.stream("r"), spoil, windows=WINDOWS).to("out")
    with TopologyTestDriver(builder) as driver:
        driver.input_topic("l").pipe_input("a", {"n": 1}, 1)
        for _ in range(2):
            driver.input_topic("r").pipe_input("a", {"n": 5}, 2)
        assert driver.output_topic("out").read_key_values() == [("a", {"n": 6}), ("a", {"n": 6})]


# -- stores


def window_store(folder: Path | None = None, retention: int = 100) -> JoinWindowStore[str, Any]:
    spec = StoreSpec(
        name="s", kind="join_window", key_serde=String(), value_serde=String(), cached=False,
        window_size_ms=retention, retention_ms=retention,
    )  # fmt: skip
    store = open_store(spec, folder)
    assert isinstance(store, JoinWindowStore)
    return store


def commit(store: JoinWindowStore[str, Any] | OuterJoinStore, checkpoint: int | None = None) -> int:
    store.drain()
    checkpoint = (store.backend.checkpoint or 0) + len(store.pending) if checkpoint is None else checkpoint
    store.written(checkpoint)
    return checkpoint


@pytest.mark.parametrize("kept_in", ["memory", "rocksdb"])
def test_records_of_one_time_are_all_kept_over_restarts(kept_in: str, tmp_path: Path) -> None:
    folder = tmp_path if kept_in == "rocksdb" else None
    store = window_store(folder)
    store.add(b"a", "1", 7)
    store.add(b"aa", "other", 7)
    store.add(b"a", "2", 7)
    commit(store)
    store.add(b"a", "3", 5)
    assert store.find(b"a", 0, 10) == [(5, "3"), (7, "1"), (7, "2")]
    commit(store)
    if folder is not None:
        store.close()
        store = window_store(folder)
    store.shrink()
    store.add(b"a", "4", 7)  # must not take the place of the first, whose number was 1
    assert store.find(b"a", 0, 10) == [(5, "3"), (7, "1"), (7, "2"), (7, "4")]
    commit(store)
    store.shrink()
    assert store.find(b"a", 6, 7) == [(7, "1"), (7, "2"), (7, "4")]
    assert [value for _, value in store.all()] == ["3", "1", "2", "4", "other"]
    store.close()


STEPS = st.one_of(
    st.tuples(st.just("add"), st.sampled_from([b"a", b"aa", b"b"]), st.integers(0, 400_000)),
    st.tuples(st.just("find"), st.sampled_from([b"a", b"aa", b"b"]), st.integers(0, 400_000)),
    st.sampled_from([("commit",), ("shrink",)]),
)

ADDED, FOUND = ("add", b"a", 100_000), ("find", b"a", 100_000)


@example(steps=[ADDED, FOUND, *[("add", b"a", 200_000)] * 4, ("commit",), FOUND], past_max=0)
@settings(max_examples=depth.times(60))
@given(steps=st.lists(STEPS, max_size=60), past_max=st.sampled_from([0, join_window.PAST_MAX]))
def test_the_window_store_is_a_sorted_list(steps: list[tuple[Any, ...]], past_max: int) -> None:
    with patch.object(join_window, "PAST_MAX", past_max):
        plays_as_a_sorted_list(steps)


def plays_as_a_sorted_list(steps: list[tuple[Any, ...]]) -> None:
    retention = 120_000
    store, model, newest = window_store(retention=retention), list[tuple[bytes, int, str]](), -1
    for number, step in enumerate(steps):
        match step:
            case ("add", key, timestamp):
                store.add(key, str(number), timestamp)
                newest = max(newest, timestamp)
                if timestamp > newest - retention:
                    model.append((key, timestamp, str(number)))
            case ("find", key, timestamp):
                expected_rows = [
                    (time, value)
                    for each, time, value in model
                    if each == key and timestamp - 50_000 <= time <= timestamp and time > newest - retention
                ]
                rows = store.find(key, timestamp - 50_000, timestamp)
                assert rows == sorted(expected_rows, key=lambda pair: pair[0])
            case ("commit",):
                commit(store)
            case _:
                store.shrink()
    assert store.stream_time == newest


def test_what_is_past_retention_leaves_memory() -> None:
    store, sizes = window_store(retention=100), list[int]()
    for timestamp in range(20_000):  # all of one segment, which is dropped as a whole only
        key = b"looked up" if timestamp % 2 else b"not looked up"
        store.add(key, "value", timestamp)
        if timestamp % 100 == 99:
            assert len(store.find(b"looked up", timestamp - 10, timestamp)) == 6
            commit(store)
            sizes.append(store.cache_bytes)
    assert max(sizes[50:]) <= max(sizes[:50])


def test_what_is_past_retention_at_a_commit_is_not_written() -> None:
    store = window_store(retention=100)
    store.find(b"looked up", 0, 100)
    for timestamp in (0, 50, 899, 900, 999):
        store.add(b"looked up", "value", timestamp)
        store.add(b"not looked up", "value", timestamp)
    store.drain()
    assert sorted({window_start(stored_key) for stored_key in store.pending}) == [900, 999]
    assert len(store.pending) == 4
    for key in (b"looked up", b"not looked up"):
        assert store.find(key, 0, 1000) == [(900, "value"), (999, "value")]


@pytest.mark.parametrize("clocks", ["committed", "lost"])
def test_numbers_go_on_behind_those_that_were_not_written(clocks: str, tmp_path: Path) -> None:
    store = window_store(tmp_path)
    for number in range(5):
        store.add(b"a", f"past {number}", 1)
    store.add(b"a", "before", 1000)
    store.add(b"a", "before", 1000)
    commit(store)
    times = store.clocks()
    store.close()
    store = window_store(tmp_path)
    store.set_clocks(times if clocks == "committed" else {})
    for _ in range(7):
        store.add(b"a", "after", 1000)
    assert [value for _, value in store.find(b"a", 0, 1000)] == 2 * ["before"] + 7 * ["after"]
    store.close()


def test_what_met_nothing_is_kept_as_kafka_does() -> None:
    """Bytes of ListSerde, LeftOrRightValueSerde and TimestampedKeyAndJoinSideSerde."""
    values = UnmatchedValues(String(), Json(int))
    raw = values.serialize(((True, "ab"), (False, 7)))
    assert raw.hex() == "010000000200000003016162000000020037"
    assert values.deserialize(raw) == ((True, "ab"), (False, 7))
    keys = UnmatchedKeys(String())
    assert keys.serialize((5, True, "k")).hex() == "0000000000000005016b"
    assert keys.deserialize(keys.serialize((5, False, "k"))) == (5, False, "k")
    assert not UnmatchedValues(String(), Json(dict)).immutable


def outer_store(folder: Path) -> OuterJoinStore:
    spec = StoreSpec(
        name="u", kind="outer_join", key_serde=UnmatchedKeys(String()),
        value_serde=UnmatchedValues(String(), String()), cached=False,
    )  # fmt: skip
    store = open_store(spec, folder)
    assert isinstance(store, OuterJoinStore)
    store.begin(10)
    return store


def test_what_met_nothing_survives_a_restart(tmp_path: Path) -> None:
    store = outer_store(tmp_path)
    store.keep(b"b", "1", 4, is_left=True)
    store.keep(b"a", "2", 4, is_left=True)
    store.keep(b"a", "3", 4, is_left=True)
    store.keep(b"z", "4", 4, is_left=False)
    store.keep(b"c", "5", 9, is_left=True)
    store.keep(b"gone", "6", 3, is_left=True)
    store.forget(b"gone", 3, is_left=True, now=10)
    commit(store)
    store.close()
    store = outer_store(tmp_path)
    store.time = 20
    assert store.is_worth_a_look(10, wall_clock=5, every_ms=1000)
    assert not store.is_worth_a_look(10, wall_clock=1004, every_ms=1000)
    assert [
        (each.timestamp, each.is_left, each.key, each.values) for each in store.take_closed(0, 10, 5)
    ] == [
        (4, False, b"z", ("4",)),
        (4, True, b"a", ("2", "3")),
        (4, True, b"b", ("1",)),
    ]
    commit(store)
    assert [TIME_AND_SIDE.unpack_from(key) for key, _ in store.backend.scan()] == [(9, 1)]
    store.close()


# -- errors


def test_joined_streams_need_the_same_number_of_partitions() -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    builder.stream("l").join(builder.stream("r"), lambda x, y: x, windows=WINDOWS).to("out")
    with pytest.raises(TopologyError, match="'l' has 2, 'r' has 3"):
        partition_counts(builder.build(), {"l": 2, "r": 3})


def of(action: Callable[[Any, Any, Any], object]) -> Callable[[], object]:
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    return lambda: action(builder.stream("l"), builder.stream("r"), builder.table("t"))


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (of(lambda a, b, t: a.join(b, max)), "windows=JoinWindows"),
        (of(lambda a, b, t: a.join(t, max, windows=WINDOWS)), "without windows"),
        (of(lambda a, b, t: a.join("r", max, windows=WINDOWS)), "a KTable or a GlobalKTable, not with a str"),
        (of(lambda a, b, t: a.outer_join(t, max, windows=WINDOWS)), "not with a KTable"),
        (of(lambda a, b, t: a.join(b, max, Joined(), windows=WINDOWS)), "StreamJoined"),
        (of(lambda a, b, t: a.join(t, max, store="s")), "store= is for the join of two streams"),
        (of(lambda a, b, t: a.join(b, lambda x: x, windows=WINDOWS)), "takes neither"),
        (of(lambda a, b, t: a.join(b, "x", windows=WINDOWS)), "not 'x'"),
        (lambda: JoinWindows(before=1, after=-2), "must not be negative"),
        (lambda: JoinWindows.of(1, grace=-1), "must not be negative"),
        (of(lambda a, b, t: a.join(StreamsBuilder(key_serde=str, value_serde=str).stream("r"), max,
                                   windows=WINDOWS)), "one StreamsBuilder"),
    ],
)  # fmt: skip
def test_what_cannot_be_joined_is_refused(action: Callable[[], object], message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        action()


def test_joiners_tell_by_their_parameters_whether_they_take_the_key() -> None:
    class Pair(NamedTuple):
        value: Any
        other: Any

    assert not joiner_takes_key(lambda value, other: None)
    assert joiner_takes_key(lambda key, value, other: None)
    assert not joiner_takes_key(lambda value, other, scale=1: None)
    assert not joiner_takes_key(lambda *values: None)
    assert not joiner_takes_key(Pair)
    assert not joiner_takes_key(max)


def test_options_name_nodes_stores_and_topics() -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    options = StreamJoined(name="both", store="kept", persistent=False, logging=False)
    left = builder.stream("l").select_key(lambda key, value: value)
    left.join(builder.stream("r"), lambda x, y: x, options, windows=WINDOWS, name="other")
    topology = builder.build()
    assert topology.repartition_topics == ["other-left-repartition"]
    assert set(topology.stores) == {"kept-this-join-store", "kept-other-join-store"}
    for spec in topology.stores.values():
        assert (spec.persistent, spec.logged, spec.cached) == (False, False, False)
        assert (spec.window_size_ms, spec.retention_ms) == (16, 21)
