"""As-of joins: each record meets at most one of the other stream's, as in pandas' ``merge_asof``."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams import StreamsBuilder, TopologyError
from streams.processors.joins.asof import Direction
from streams.testing import TopologyTestDriver
from tests.support import depth

Event = tuple[bool, str, int]
"""Whether it is of the left stream, key and timestamp; its place in the list is its value."""
Answer = tuple[int, int, int | None]
"""Place of a left record, its timestamp, and the place of what it meets."""
IDLE = 1_000


def topology(*, outer: bool = True, **options: Any) -> StreamsBuilder:
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    left, right = builder.stream("left"), builder.stream("right")
    join: Any = left.left_join_asof if outer else left.join_asof
    join(right, lambda value, other: [value, other], store="asof", **options).to("out", value_serde=list)
    return builder


def answers(driver: TopologyTestDriver) -> list[Answer]:
    return [(each.value[0], each.timestamp, each.value[1]) for each in driver.output_topic("out").read_all()]


def joined(events: list[Event], *, shrunk: bool = False, idle: bool = False, **options: Any) -> list[Answer]:
    """``shrunk``: nothing stays in memory from one record to the next; ``idle``: nothing comes in the end."""
    with TopologyTestDriver(topology(**options)) as driver:
        for number, (is_left, key, timestamp) in enumerate(events):
            driver.input_topic("left" if is_left else "right").pipe_input(key, number, timestamp)
            if shrunk:
                for store in driver.topology.stores:
                    driver.store(store).shrink()
        if idle:
            driver.advance_wall_clock(IDLE)
        return answers(driver)


LEFT, RIGHT = (True, "k"), (False, "k")
AROUND: list[Event] = [(*RIGHT, 3), (*RIGHT, 7), (*LEFT, 8), (*RIGHT, 12), (*RIGHT, 13)]


def test_backward_meets_the_last_one_before_at_once() -> None:
    assert joined(AROUND[:3], tolerance=5) == [(2, 8, 1)]
    assert joined([*AROUND[:3], (*RIGHT, 8)], tolerance=5) == [(2, 8, 1)], "it went on before that came"
    assert joined([*AROUND[:2], (*LEFT, 20)], tolerance=5) == [(2, 20, None)]
    assert joined([*AROUND[:2], (*LEFT, 20)], tolerance=5, outer=False) == []


def test_forward_waits_for_the_first_one_behind() -> None:
    assert joined(AROUND[:3], tolerance=5, direction="forward") == []
    assert joined(AROUND, tolerance=5, direction="forward") == [(2, 8, 3)]
    assert joined([*AROUND[:3], (*RIGHT, 20)], tolerance=5, direction="forward") == [(2, 8, None)]


def test_nearest_waits_until_nothing_nearer_can_come() -> None:
    near: dict[str, Any] = {"tolerance": 5, "direction": "nearest"}
    assert joined(AROUND[:3], **near) == []
    assert joined([*AROUND[:3], (*LEFT, 9)], **near) == [(2, 8, 1)], "another of 9 would not be nearer"
    assert joined([*AROUND[:2], (*LEFT, 10), (*RIGHT, 12)], **near) == [(2, 10, 3)]
    assert joined([*AROUND[:2], (*LEFT, 10), (*RIGHT, 13)], **near) == [(2, 10, 1)]
    tie = [*AROUND[:2], (*LEFT, 10), (*RIGHT, 13), (*RIGHT, 15)]
    assert joined(tie, **near, grace=2) == [(2, 10, 1)], "the earlier of two"


@pytest.mark.parametrize(("direction", "met"), [("backward", 2), ("forward", 1), ("nearest", 2)])
def test_matches_of_the_same_time(direction: Direction, met: int) -> None:
    events = [(*RIGHT, 2), (*RIGHT, 8), (*RIGHT, 8), (*LEFT, 8), (*RIGHT, 11), (*RIGHT, 99)]
    assert joined(events, tolerance=6, direction=direction) == [(3, 8, met)]
    other = {"backward": 0, "forward": 4, "nearest": 4}[direction]
    options: dict[str, Any] = {"direction": direction, "allow_exact_matches": False}
    assert joined(events, tolerance=6, **options) == [(3, 8, other)]


def test_grace_waits_for_records_out_of_order() -> None:
    events = [(*RIGHT, 3), (*LEFT, 8), (*LEFT, 10), (*RIGHT, 7), (*LEFT, 11)]
    assert joined(events, tolerance=9) == [(1, 8, 0), (2, 10, 0), (4, 11, 3)]
    assert joined(events, tolerance=9, grace=3) == [(1, 8, 3)]


class Model:
    """Looks for each record that waits through all that came of the other stream, after every record."""

    def __init__(self, direction: str, tolerance: int, grace: int, *, exact: bool) -> None:
        self.direction, self.tolerance, self.grace, self.exact = direction, tolerance, grace, exact
        self.retention = tolerance * (2 if direction == "nearest" else 1) + grace
        self.time = self.newest = -1
        self.right: list[tuple[str, int, int]] = []
        self.waiting: list[tuple[int, int, str]] = []
        self.answers: list[Answer] = []

    def best(self, key: str, timestamp: int) -> tuple[int, int] | None:
        """Time and place."""
        nodees: list[Any] = []
        for each, time, place in self.right:
            apart = time - timestamp
            if each != key or abs(apart) > self.tolerance or time < self.newest - self.retention:
                continue
            if apart == 0 and not self.exact:
                continue
            if (self.direction == "backward" and apart > 0) or (self.direction == "forward" and apart < 0):
                continue
            is_forward = apart > 0 or self.direction == "forward"
            nodees.append(((abs(apart), is_forward, place if is_forward else -place), (time, place)))
        return min(nodees)[1] if nodees else None

    def is_settled(self, timestamp: int, match: tuple[int, int] | None) -> bool:
        """Return True if no record that is on time can be a better match."""
        on_time = self.time - self.grace
        if self.direction == "backward":
            return on_time >= timestamp
        if match is None:
            return on_time > timestamp + self.tolerance
        return on_time >= timestamp + abs(match[0] - timestamp)

    def settle(self) -> None:
        for waiting in sorted(self.waiting):
            timestamp, place, key = waiting
            match = self.best(key, timestamp)
            if self.is_settled(timestamp, match):
                self.answers.append((place, timestamp, None if match is None else match[1]))
                self.waiting.remove(waiting)

    def take(self, place: int, event: Event) -> None:
        is_left, key, timestamp = event
        self.time = max(self.time, timestamp)
        self.settle()
        if is_left:
            self.waiting.append((timestamp, place, key))
        else:
            self.right.append((key, timestamp, place))
            self.newest = max(self.newest, timestamp)
        self.settle()


directions: Any = st.sampled_from(["backward", "forward", "nearest"])
events = st.lists(st.tuples(st.booleans(), st.sampled_from("ab"), st.integers(0, 40)), max_size=30)


@settings(max_examples=depth.times(200))
@given(
    events, directions, st.sampled_from([0, 3, 10]), st.sampled_from([0, 2, 9]), st.booleans(), st.booleans()
)
def test_agrees_with_a_model(
    events: list[Event], direction: Direction, tolerance: int, grace: int, exact: bool, shrunk: bool
) -> None:
    model = Model(direction, tolerance, grace, exact=exact)
    for place, event in enumerate(events):
        model.take(place, event)
    options: dict[str, Any] = {"direction": direction, "allow_exact_matches": exact}
    answers = joined(events, tolerance=tolerance, grace=grace, shrunk=shrunk, **options)
    assert answers == model.answers
    inner = joined(events, tolerance=tolerance, grace=grace, outer=False, **options)
    assert inner == [each for each in answers if each[2] is not None]


@settings(max_examples=depth.times(50))
@given(events, directions)
def test_in_order_of_time_it_is_what_merge_asof_says(events: list[Event], direction: Direction) -> None:
    """If records are in order and no two have the same time, the result does not depend on when it is
    written.
    """
    times = sorted({time for _, _, time in events})
    events = [(*events[number][:2], time) for number, time in enumerate(times)]
    expected = set()
    for place, (is_left, key, time) in enumerate(events):
        apart = {at - time: n for n, (left, each, at) in enumerate(events) if not left and each == key}
        backward = [each for each in apart if -8 <= each < 0 and direction != "forward"]
        forward = [each for each in apart if 8 >= each > 0 and direction != "backward"]
        nearest = min(backward + forward, key=lambda each: (abs(each), each), default=None)
        if is_left:
            expected.add((place, time, None if nearest is None else apart[nearest]))
    answers = joined(events, tolerance=8, direction=direction, idle_timeout=IDLE, idle=True)
    assert len(answers) == len(expected)
    assert set(answers) == expected


def test_headers_and_null_keys_and_values() -> None:
    with TopologyTestDriver(topology(tolerance=5, direction="forward")) as driver:
        left, right = driver.input_topic("left"), driver.input_topic("right")
        left.pipe_input("k", 1, 10, headers=(("h", b"1"),))
        left.pipe_input("k", None, 10)
        left.pipe_input(None, 2, 10)
        right.pipe_input(None, 3, 10)
        right.pipe_input("k", None, 10)
        right.pipe_input("k", 4, 11, headers=(("h", b"2"),))
        records = driver.output_topic("out").read_all()
        assert [(each.key, each.value, each.timestamp, each.headers) for each in records] == [
            (None, [2, None], 10, ()),
            ("k", [1, 4], 10, (("h", b"1"),)),
        ]
        assert sum(node.dropped_records_total for node in driver.metrics().values()) == 3


def test_state_is_bounded_by_stream_time() -> None:
    with TopologyTestDriver(topology(tolerance=60_000, direction="nearest")) as driver:
        for number in range(200):
            driver.input_topic("left").pipe_input("k", number, number * 10_000)
            driver.input_topic("right").pipe_input("k", number, number * 10_000 + 1)
        assert len(driver.store("asof-asof-other-join-store").scan()) < 40
        assert len(driver.store("asof-asof-this-join-store").scan()) < 8


def test_names_and_options() -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    left, right = builder.stream("left"), builder.stream("right")
    left.join_asof(right, lambda one, other: one + other, tolerance=5).to("out", value_serde=str)
    left.join_asof(right, lambda one, other: one, tolerance=5, direction="nearest", name="near")
    described = builder.build().describe()
    store = "KSTREAM-ASOFOTHER-0000000003-store"
    assert f"Processor: KSTREAM-ASOFTHIS-0000000002 (stores: [{store}])" in described, "nothing waits"
    assert "Processor: near-asof-this-join" in described
    for options, message in (
        ({"tolerance": -1}, "tolerance is -1, it must not be negative"),
        ({"tolerance": 5, "grace": -1}, "grace is -1, it must not be negative"),
        ({"tolerance": 5, "direction": "up"}, "direction is 'up', it may be 'backward', 'forward' or"),
        ({"tolerance": 5, "idle_timeout": 0}, "idle_timeout is 0, it must be longer than 0"),
    ):
        with pytest.raises(TopologyError, match=message):
            topology(**options)
    table: Any = builder.table("table")
    with pytest.raises(TopologyError, match="an as-of join is with a KStream, not with a KTable"):
        left.join_asof(table, lambda one, other: one, tolerance=5)
