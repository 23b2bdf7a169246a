"""Windows that close once a task's inputs bring nothing for a time of the wall clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_client import TopicPartition
from kafka_client.errors import RequestTimedOut
from streams import (
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    TopologyError,
    UnlimitedWindows,
)
from streams.processors.metrics import NodeMetrics
from streams.runtime.task import idle_ends
from streams.runtime.task.idle import IdleWatch
from streams.runtime.task.idle_ends import IdleEnds, Upstream
from streams.runtime.task.input_buffer import InputBuffer
from streams.runtime.task.input_start import InputStart
from streams.runtime.task.queue import InputQueue
from streams.testing import TopologyTestDriver
from streams.topology.upstream import sources_upstream
from tests.support import depth

IDLE = 1_000
TP = TopicPartition("in", 0)


def counting(windows: Any, *, held_back: bool = False, idle: int | None = IDLE) -> StreamsBuilder:
    """Counts that are told once a window closes: by the aggregation, or by a suppressed table."""
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    grouped: Any = builder.stream("in").group_by_key()
    if held_back:
        table = grouped.windowed_by(windows).count(store="counts")
        table = table.suppress(Suppressed.until_window_closes(idle_timeout=idle))
    else:
        windowed = grouped.windowed_by(windows, emit_strategy="on_window_close", idle_timeout=idle)
        table = windowed.count(store="counts")
    table.to_stream(lambda key, count: f"{key.key} {key.window.start}-{key.window.end}").to(
        "out", value_serde=int
    )
    return builder


@pytest.mark.parametrize("held_back", [False, True])
def test_windows_close_once_nothing_came_for_the_time(held_back: bool) -> None:
    with TopologyTestDriver(counting(TimeWindows(10, grace=5), held_back=held_back)) as driver:
        topic, out = driver.input_topic("in"), driver.output_topic("out")
        topic.pipe_input("a", "", 3)
        topic.pipe_input("b", "", 12)
        driver.advance_wall_clock(IDLE - 1)
        assert out.read_key_values() == []
        topic.pipe_input("a", "", 13)
        driver.advance_wall_clock(IDLE - 1)
        assert out.read_key_values() == [], "it came in between"
        driver.advance_wall_clock(1)
        assert out.read_key_values() == [("a 0-10", 1), ("a 10-20", 1), ("b 10-20", 1)]
        driver.advance_wall_clock(10 * IDLE)
        assert out.read_key_values() == [], "once each"


@pytest.mark.parametrize("held_back", [False, True])
def test_what_comes_for_a_closed_window_is_late(held_back: bool) -> None:
    with TopologyTestDriver(counting(TimeWindows(10, grace=20), held_back=held_back)) as driver:
        topic, out = driver.input_topic("in"), driver.output_topic("out")
        topic.pipe_input("a", "", 3)
        driver.advance_wall_clock(IDLE)
        topic.pipe_input("a", "", 9)
        topic.pipe_input("a", "", 11)
        driver.advance_wall_clock(IDLE)
        assert out.read_key_values() == [("a 0-10", 1), ("a 10-20", 1)]
        assert sum(node.late_records_total for node in driver.metrics().values()) == 1
        assert driver.window_store("counts").get("a", 0) == 1
        assert driver.window_store("counts").stream_time == 40, "the end of the last one, and grace"


@pytest.mark.parametrize(
    ("windows", "closed"),
    [
        (TimeWindows(10, advance=5), ["a 0-10", "a 10-20", "a 5-15"]),
        (SlidingWindows(5), ["a 3-8", "a 5-10", "a 9-14"]),
        (SessionWindows(5), ["a 8-10"]),
    ],
)
def test_all_kinds_of_windows_close(windows: Any, closed: list[str]) -> None:
    for held_back in (False, True):
        with TopologyTestDriver(counting(windows, held_back=held_back)) as driver:
            driver.input_topic("in").pipe_input("a", "", 8)
            driver.input_topic("in").pipe_input("a", "", 10)
            driver.advance_wall_clock(IDLE)
            keys = [key for key, _ in driver.output_topic("out").read_key_values()]
        assert sorted(keys) == sorted(closed), held_back


events = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 60)) | st.integers(1, IDLE), min_size=1, max_size=25
)


def model(events: list[Any], size: int, grace: int) -> tuple[dict[str, int], int]:
    """Final counts of closed windows and how many records were late, from nothing but the rules."""
    counts: dict[tuple[str, int], int] = {}
    stream_time = newest = -1
    idle, late = 0, 0
    for each in events:
        if isinstance(each, int):
            idle += each
            if idle >= IDLE and newest >= 0:
                stream_time = max(stream_time, newest + size + grace)
            continue
        idle, (key, time) = 0, each
        start = time - time % size
        stream_time = max(stream_time, time)
        if start + size <= stream_time - grace:
            late += 1
        else:
            newest = max(newest, start)
            counts[key, start] = counts.get((key, start), 0) + 1
    closed = {window: n for window, n in counts.items() if window[1] + size <= stream_time - grace}
    return {f"{key} {start}-{start + size}": n for (key, start), n in closed.items()}, late


@settings(max_examples=depth.times(60))
@given(events, st.sampled_from([4, 10]), st.sampled_from([0, 3, 20]), st.booleans())
def test_what_is_told_agrees_with_a_model(events: list[Any], size: int, grace: int, held_back: bool) -> None:
    events = [*events, IDLE]
    with TopologyTestDriver(counting(TimeWindows(size, grace=grace), held_back=held_back)) as driver:
        for each in events:
            if isinstance(each, int):
                driver.advance_wall_clock(each)
            else:
                driver.input_topic("in").pipe_input(each[0], "", each[1])
        output = driver.output_topic("out").read_key_values()
        late = sum(node.late_records_total for node in driver.metrics().values())
    assert len(dict(output)) == len(output), "once each"
    assert (dict(output), late) == model(events, size, grace)


def test_windows_above_windows_close_too() -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    first = builder.stream("in").group_by_key().windowed_by(TimeWindows(10))
    counts: Any = first.emit_strategy("on_window_close", idle_timeout=2 * IDLE).count()
    keyed = counts.to_stream(lambda key, count: key.key).map_values(str).group_by_key(key_serde=str)
    second = keyed.windowed_by(TimeWindows(100), emit_strategy="on_window_close", idle_timeout=IDLE)
    second.count().to_stream(lambda key, count: key.key).to("out")
    with TopologyTestDriver(builder) as driver:
        driver.input_topic("in").pipe_input("a", "", 5)
        driver.advance_wall_clock(2 * IDLE)
        driver.advance_wall_clock(2 * IDLE)
        assert driver.output_topic("out").read_key_values() == [("a", 1)]


# -- when inputs are idle


class Watched:
    """A watch over one input, and how often it had something called."""

    def __init__(self) -> None:
        def never(*_: object) -> None:
            raise AssertionError("nothing is decoded here")

        source: Any = None
        self.called = 0
        self.queue = InputQueue(
            TP,
            source,
            never,
            NodeMetrics(),
            InputStart(position=5, end=5),
            task_id="0_0",
            on_bad_record=never,
            buffer=InputBuffer(),
        )
        self.watch = IdleWatch({TP: self.queue}, [(IDLE, self._call)], 0)
        self.watch.look(0)

    def _call(self) -> None:
        self.called += 1

    def look(self, *times: int) -> bool:
        for time in times:
            self.watch.look(time)
        return self.watch.is_due


def steps(begin: int, end: int) -> range:
    return range(begin, end + 1, 100)


def test_a_jump_of_the_clock_or_a_pause_is_no_idle_time() -> None:
    watched = Watched()
    watched.watch.step_max_ms = 100
    assert not watched.look(500_000, 400_000, 400_100)
    assert watched.look(*steps(400_200, 401_200))


def lag(watched: Watched) -> None:
    watched.queue.end = 9


def more(watched: Watched) -> None:
    watched.queue.fetched = watched.queue.end = 7


@pytest.mark.parametrize("change", [lag, more])
def test_an_input_with_lag_is_not_idle(change: Callable[[Watched], None]) -> None:
    watched = Watched()
    assert not watched.look(*steps(100, 900))
    change(watched)
    assert not watched.look(*steps(1000, 1900))


def test_an_input_whose_records_are_in_flight_is_not_idle() -> None:
    watched = Watched()
    assert not watched.look(*steps(100, 900))
    watched.watch.look(950, is_holding=True)
    assert not watched.look(*steps(1000, 1900))


def test_nothing_is_called_before_the_brokers_confirmed_it() -> None:
    watched = Watched()
    assert watched.look(*steps(100, 1000))
    assert not watched.watch.is_confirmed
    watched.watch.check_ends({TP: 6})
    assert not watched.watch.is_due, "there is more: an open transaction's, perhaps"
    assert watched.look(*steps(1100, 2000))
    watched.watch.check_ends({})
    assert not watched.watch.is_confirmed
    assert watched.look(*steps(2100, 3000))
    watched.watch.check_ends({TP: 5})
    assert watched.watch.is_confirmed
    for callback in watched.watch.take_due():
        callback()
    assert (watched.called, watched.watch.has_closed, watched.watch.is_due) == (1, True, False)


async def test_windows_stay_open_while_nobody_says_where_the_inputs_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Silent:
        def __init__(self, client: object) -> None:
            pass

        async def list_offsets(self, specs: dict[TopicPartition, str]) -> dict[TopicPartition, Any]:
            requests.append(specs)
            if len(requests) == 1:
                raise RequestTimedOut("no broker answers")
            return dict.fromkeys(specs, Mock(offset=5))

    requests: list[dict[TopicPartition, str]] = []
    monkeypatch.setattr(idle_ends, "Admin", Silent)
    watched = Watched()
    client: Any = None

    async def ask(ends: IdleEnds) -> None:
        ends.ask([(0, watched.watch)])
        while ends.is_asking:  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0)

    ends = IdleEnds(client, "group", dict)
    await ask(ends)
    assert requests == [], "it is not due"
    assert watched.look(*steps(100, 1000))
    await ask(ends)
    assert (watched.watch.is_confirmed, watched.watch.is_due) == (False, False)
    assert watched.look(*steps(1100, 2000))
    await ask(ends)
    assert watched.watch.is_confirmed
    await ask(ends)
    assert requests == [{TP: "latest"}] * 2, "not again what is confirmed"
    await ends.close()


def test_windows_behind_a_topic_stay_open_while_there_is_more_above_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Offsets:
        """The offsets of a topic with two partitions; the second has no committed offset."""

        def __init__(self, client: object) -> None:
            pass

        async def list_group_offsets(self, group: str, tps: object) -> dict[TopicPartition, Any]:
            return {ABOVE: Mock(offset=offsets["committed"])}

        async def list_offsets(self, specs: dict[TopicPartition, str]) -> dict[TopicPartition, Any]:
            ends = {TP: 5, ABOVE: 9, UNREAD: 3}
            return {
                tp: Mock(offset=ends[tp] if at == "latest" else offsets["begin"]) for tp, at in specs.items()
            }

    ABOVE, UNREAD = TopicPartition("above", 0), TopicPartition("above", 1)
    client: Any = Mock()
    client.metadata = AsyncMock(return_value=Mock(topics={"above": Mock(partition_count=2)}))
    monkeypatch.setattr(idle_ends, "Admin", Offsets)

    async def is_confirmed(upstream: Upstream) -> bool:
        watched = Watched()
        watched.look(*steps(100, 1000))
        ends = IdleEnds(client, "group", lambda: {1: upstream})
        ends.ask([(1, watched.watch)])
        while ends.is_asking:  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0)
        assert ends.take_wants_commit() is not watched.watch.is_confirmed
        return watched.watch.is_confirmed

    above = frozenset(["above"])
    offsets: dict[str, int] = {}
    for answer, latest, confirmed in (
        ({"committed": 9, "begin": 3}, False, True),
        ({"committed": 8, "begin": 3}, False, False),
        ({"committed": 9, "begin": 0}, False, False),
        ({"committed": 9, "begin": 0}, True, True),
    ):
        offsets.update(answer)
        upstream = Upstream(above, above if latest else frozenset())
        assert asyncio.run(is_confirmed(upstream)) is confirmed


def test_what_is_above_a_repartition_topic() -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    other = builder.stream("b")
    first = builder.stream("a").join(other.to_table(), lambda one, two: one).repartition(name="x")
    first.select_key(lambda key, value: value).group_by_key(key_serde=str, name="y").count()
    builder.stream("c").to("d")
    upstream = {number: sorted(sources) for number, sources in sources_upstream(builder.build()).items()}
    assert sorted(upstream.values()) == [[], [], ["a", "b"], ["a", "b", "x-repartition"]]


# -- refused


def test_what_makes_no_sense_is_refused() -> None:
    grouped = StreamsBuilder(key_serde=str, value_serde=str).stream("in").group_by_key()
    with pytest.raises(TopologyError, match="idle_timeout= is for emit_strategy='on_window_close'"):
        grouped.windowed_by(TimeWindows(10), idle_timeout=5)
    with pytest.raises(TopologyError, match="idle_timeout is 0, it must be longer than 0"):
        grouped.windowed_by(TimeWindows(10), emit_strategy="on_window_close", idle_timeout=0)
    with pytest.raises(TopologyError, match="idle_timeout is -1, it must be longer than 0"):
        Suppressed.until_window_closes(idle_timeout=-1)
    with pytest.raises(TopologyError, match="UnlimitedWindows never close"):
        grouped.windowed_by(UnlimitedWindows(), emit_strategy="on_window_close", idle_timeout=5)
