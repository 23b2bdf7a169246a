"""Asynchronous nodes without a broker: their order, their bound, their errors, and the test driver."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams import Processor, ProcessorContext, Record, StreamsBuilder, TopologyError, log_and_continue
from streams.errors import ProcessingError
from streams.processors.coroutines import Call
from streams.processors.stateless.in_flight import Ordered
from streams.runtime.task.task import Task
from streams.testing import TopologyTestDriver
from streams.topology import Handlers
from tests.streams.runtime.task.test_task import A, give, make


async def doubled(value: int) -> int:
    await asyncio.sleep(0)
    return 2 * value


def builder_of(mapper: Callable[..., Any], **how: Any) -> StreamsBuilder:
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    builder.stream("in").map_values_async(mapper, **how).to("out", value_serde=int)
    return builder


class ByHand:
    """Coroutines that are over when the test says so. ``running``: those that are not."""

    def __init__(self) -> None:
        self.running: list[tuple[Call, deque[Call]]] = []
        self.given_up: list[Call] = []
        self.most = 0

    def start(self, call: Call, over: deque[Call]) -> None:
        self.running.append((call, over))
        self.most = max(self.most, len(self.running))

    def finish(self, which: int) -> None:
        call, over = self.running.pop(which)
        try:
            call.result = asyncio.run(call.work())
        except Exception as error:
            call.error = error
        call.is_over = True
        over.append(call)

    def wait(self, over: deque[Call]) -> None:
        while not over:
            self.finish(0)

    def give_up(self, calls: Iterable[Call]) -> None:
        self.given_up += calls

    async def entered(self, node: str, context: Any) -> Any:
        raise AssertionError

    async def sleep(self, seconds: float) -> None:
        pass


def task_of(outputs: list[Any], coroutines: ByHand, mapper: Any = doubled, **how: Any) -> Task:
    """Reads ``a``, whose values are the timestamps; notes keys, values and what is with them."""

    class Note(Processor[str, int]):
        def process(self, record: Record[str, int]) -> None:
            place = self.context.record_metadata
            outputs.append((record, place and place.offset, self.context.stream_time))

    builder = StreamsBuilder(key_serde=str, value_serde=int)
    builder.stream("a").map(lambda key, value: (str(value % 3), value)).map_values_async(
        mapper, **how
    ).process(Note)
    task, _ = make(builder, coroutines=coroutines)
    return task


def test_results_have_their_records_time_place_and_headers() -> None:
    outputs: list[Any] = []
    coroutines = ByHand()
    task = task_of(outputs, coroutines, ordered="none")
    give(task, A, 10, 30, 20)
    task.process()
    assert outputs == []
    for which in (2, 0, 0):
        coroutines.finish(which)
        task.process()
    assert outputs == [
        (Record("2", 40, 20, ()), 2, 30),
        (Record("1", 20, 10, ()), 0, 10),
        (Record("0", 60, 30, ()), 1, 30),
    ]
    assert task.stream_time == 30


@given(
    times=st.lists(st.integers(0, 20), max_size=25),
    ordered=st.sampled_from(["key", "partition", "none"]),
    limit=st.integers(1, 6),
    data=st.data(),
)
def test_any_latencies_keep_the_order(times: list[int], ordered: Ordered, limit: int, data: Any) -> None:
    """Whichever call is over first: nothing is lost, the bound holds, and what is to keep its order does."""
    outputs: list[Any] = []
    coroutines = ByHand()
    task = task_of(outputs, coroutines, ordered=ordered, max_in_flight=limit)
    give(task, A, *times)
    while True:
        processed = task.process()
        assert task.held_records <= limit
        assert coroutines.most <= limit
        if not coroutines.running:
            break
        if ordered == "key":
            keys = [call.record.key for call, _ in coroutines.running]  # type: ignore[attr-defined]
            assert len(set(keys)) == len(keys), "calls of one key follow each other"
        if processed and data.draw(st.booleans()):
            assert task.flush().positions == {A: len(outputs)}, "a commit has everything before its position"
            continue
        coroutines.finish(data.draw(st.integers(0, len(coroutines.running) - 1)))
    offsets = [offset for _, offset, _ in outputs]
    assert sorted(offsets) == list(range(len(times)))
    if ordered == "partition":
        assert offsets == sorted(offsets)
    if ordered == "key":
        for key in "012":
            of_key = [offset for record, offset, _ in outputs if record.key == key]
            assert of_key == sorted(of_key)


def test_input_waits_at_the_bound_and_goes_on_below_it() -> None:
    coroutines = ByHand()
    task = task_of([], coroutines, max_in_flight=2, ordered="none")
    give(task, A, *range(10))
    assert task.process() == 2
    assert task.process() == 0
    coroutines.finish(1)
    assert task.process() == 1
    assert task.has_input
    assert task.held_records == 2


def test_a_record_that_becomes_many_waits_within_the_node() -> None:
    outputs: list[Any] = []
    coroutines = ByHand()
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    many = builder.stream("a").flat_map(lambda key, value: [(str(n), n) for n in range(7)])
    many.map_values_async(doubled, max_in_flight=3).foreach(lambda key, value: outputs.append(value))
    task, _ = make(builder, coroutines=coroutines)
    give(task, A, 5)
    task.process()
    assert coroutines.most == 3
    assert task.held_records == 3
    task.flush()
    assert sorted(outputs) == [0, 2, 4, 6, 8, 10, 12]


def test_a_flush_waits_for_all_also_behind_each_other_and_behind_tables() -> None:
    coroutines = ByHand()
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    sums = builder.stream("a").map_values_async(doubled).group_by_key().reduce(lambda a, b: a + b)
    sums.to_stream().map_values_async(doubled).map_values_async(doubled).to("out")
    task, _ = make(builder, coroutines=coroutines)
    give(task, A, 1, 2, 3)
    task.process()
    assert task.needs_commit
    flush = task.flush()
    (rows,) = task.take_output().values()
    assert flush.positions == {A: 3}
    assert [(timestamp, int.from_bytes(value or b"", "big")) for timestamp, _, value, _ in rows] == [(3, 48)]
    assert task.held_records == 0


def test_what_is_in_flight_when_a_task_is_closed_is_given_up() -> None:
    outputs: list[Any] = []
    coroutines = ByHand()
    task = task_of(outputs, coroutines)
    give(task, A, 1, 2, 4)
    task.process()
    coroutines.finish(0)
    left = [call for call, _ in coroutines.running]
    task.close(clean=False)
    assert left
    assert coroutines.given_up[-len(left) :] == left
    assert outputs == []
    for _ in left:
        coroutines.finish(0)
    assert task.held_records == 0
    assert outputs == []


def test_a_task_that_drains_takes_no_input() -> None:
    coroutines = ByHand()
    task = task_of([], coroutines)
    give(task, A, 1)
    task.process()
    task.takes_input = False
    give(task, A, 2, first=1)
    assert task.process() == 0
    task.takes_input = True
    assert task.process() == 1


def test_keys_that_cannot_be_hashed_keep_their_order_too() -> None:
    outputs: list[Any] = []
    coroutines = ByHand()
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    lists = builder.stream("a").map(lambda key, value: ([value % 2], value))
    lists.map_values_async(doubled).foreach(lambda key, value: outputs.append((key, value)))
    task, _ = make(builder, coroutines=coroutines)
    give(task, A, 1, 2, 3)
    task.process()
    assert len(coroutines.running) == 2
    task.flush()
    assert outputs.index(([1], 2)) < outputs.index(([1], 6))


# -- in the test driver


def test_the_driver_runs_coroutines_to_their_end() -> None:
    with TopologyTestDriver(builder_of(doubled)) as driver:
        driver.input_topic("in").pipe_all([("a", 1), ("a", 2), (None, 3)])
        assert driver.output_topic("out").read_key_values() == [("a", 2), ("a", 4), (None, 6)]


async def test_the_driver_works_within_a_running_loop() -> None:
    test_the_driver_runs_coroutines_to_their_end()


def test_keys_and_values_by_map_async() -> None:
    async def swapped(key: str, value: int) -> tuple[str, int]:
        return f"{value}", int(key)

    builder = StreamsBuilder(key_serde=str, value_serde=int)
    counted = builder.stream("in").map_async(swapped).group_by_key(key_serde=str, value_serde=int)
    counted.count(store="counts").to_stream().to("out")
    topology = builder.build()
    assert topology.repartition_topics == ["counts-repartition"]
    with TopologyTestDriver(topology) as driver:
        driver.input_topic("in").pipe_input("7", 5)
        assert driver.output_topic("out").read_key_values() == [("5", 1)]


def test_a_context_is_shared_and_left() -> None:
    values: list[str] = []

    @asynccontextmanager
    async def session() -> AsyncIterator[int]:
        values.append("entered")
        yield 10
        values.append("left")

    async def plus(key: str, value: int, session: int) -> int:
        return value + session

    with TopologyTestDriver(builder_of(plus, context=session)) as driver:
        driver.input_topic("in").pipe_all([("a", 1), ("b", 2)])
        assert driver.output_topic("out").read_key_values() == [("a", 11), ("b", 12)]
        assert values == ["entered"]
    assert values == ["entered", "left"]


def test_attempts_and_what_comes_of_the_last() -> None:
    attempts: list[int] = []

    async def third_time_lucky(value: int) -> int:
        attempts.append(value)
        if value == 2 or len(attempts) < 3:
            raise ConnectionError(f"{value} is not there")
        return value

    dead: list[Any] = []

    def handler(error: Exception, context: Any) -> Any:
        dead.append((str(error), context.node, context.topic, context.offset, context.value, context.record))
        return log_and_continue(error, context)

    handlers = Handlers(processing=handler, dead_letter_topic="dead")
    with TopologyTestDriver(builder_of(third_time_lucky, retries=2), handlers=handlers) as driver:
        driver.input_topic("in").pipe_all([("a", 1), ("a", 2), ("a", 3)], start=5)
        assert driver.output_topic("out").read_key_values() == [("a", 1), ("a", 3)]
        letters = driver.output_topic("dead", key_serde=str, value_serde=int).read_all()
        assert driver.metrics()["KSTREAM-ASYNC-0000000001"].dropped_records_total == 1
    assert attempts == [1, 1, 1, 2, 2, 2, 3]
    assert dead == [
        (
            "2 is not there",
            "KSTREAM-ASYNC-0000000001",
            "in",
            1,
            (2).to_bytes(8, "big"),
            Record("a", 2, 5),
        )
    ]
    assert [(letter.key, letter.value, letter.timestamp) for letter in letters] == [("a", 2, 5)]


def test_an_error_names_node_record_and_line() -> None:
    async def fails(value: int) -> int:
        raise ValueError(f"{value} is odd")

    with TopologyTestDriver(builder_of(fails, name="price")) as driver:
        with pytest.raises(
            ProcessingError,
            match=r"record in-0 offset 0, node price: ValueError: 7 is odd \(.*test_async_nodes.py, line ",
        ):
            driver.input_topic("in").pipe_input("a", 7)


def test_a_failure_below_names_the_node_below_and_the_record() -> None:
    outputs: list[Any] = []
    coroutines = ByHand()

    class Fail(Processor[str, int]):
        def init(self, context: ProcessorContext) -> None:
            super().init(context)

        def process(self, record: Record[str, int]) -> None:
            outputs.append(record.value)
            raise ValueError("no")

    builder = StreamsBuilder(key_serde=str, value_serde=int)
    builder.stream("a").map_values_async(doubled).process(Fail, name="below")
    task, _ = make(builder, coroutines=coroutines)
    give(task, A, 1, 2)
    task.process()
    with pytest.raises(ProcessingError, match=r"record a-0 offset 0, node below: ValueError: no"):
        task.flush()


def test_a_call_that_takes_too_long_fails() -> None:
    async def slow(value: int) -> int:
        await asyncio.Event().wait()
        return value

    with TopologyTestDriver(builder_of(slow, timeout=1, retries=1)) as driver:
        with pytest.raises(ProcessingError, match=r"slow gave no result within 1 ms .*in 2 attempts"):
            driver.input_topic("in").pipe_input("a", 7)


def test_functions_that_are_no_coroutines_are_named() -> None:
    with TopologyTestDriver(builder_of(lambda value: value)) as driver:
        with pytest.raises(ProcessingError, match="gave a int, not a coroutine: make it an 'async def'"):
            driver.input_topic("in").pipe_input("a", 7)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"max_in_flight": 0}, "max_in_flight is 0"),
        ({"ordered": "task"}, "ordered is 'task', it may be one of"),
        ({"timeout": 0}, "timeout is 0"),
        ({"retries": -1}, "retries is -1"),
        ({"retry_backoff": -1}, "retry_backoff is -1"),
        ({"context": 5}, "context is 5"),
    ],
)
def test_settings_are_checked(wrong: dict[str, Any], message: str) -> None:
    async def mapper(value: int, context: Any = None) -> int:
        return value

    with pytest.raises(TopologyError, match=message):
        builder_of(mapper, **wrong)


def test_describe_shows_a_node_with_a_number() -> None:
    described = builder_of(doubled).build().describe()
    assert "    Processor: KSTREAM-ASYNC-0000000001 (stores: [])" in described


def test_many_values_of_one() -> None:
    async def down(key: str, value: int) -> range:
        return range(value, 0, -1)

    builder = StreamsBuilder(key_serde=str, value_serde=int)
    builder.stream("in").flat_map_values_async(down).to("out", value_serde=int)
    with TopologyTestDriver(builder) as driver:
        driver.input_topic("in").pipe_all([("a", 2), ("b", 0), ("c", 1)])
        assert driver.output_topic("out").read_key_values() == [("a", 2), ("a", 1), ("c", 1)]
