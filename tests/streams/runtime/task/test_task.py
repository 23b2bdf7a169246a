"""The engine by itself: whose turn it is, what bad records do, where a task stands."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_client import TopicPartition
from streams import Processor, ProcessorContext, Record, StreamsBuilder, StreamsError, log_and_continue
from streams.errors import ProcessingError, SerializationError
from streams.processors.coroutines import Coroutines
from streams.runtime.task.environment import TaskEnvironment
from streams.runtime.task.input_start import InputStart
from streams.runtime.task.settings import TaskSettings
from streams.runtime.task.task import FIRST_RUN_LIMIT, Task
from streams.runtime.task_id import TaskId
from streams.state import open_store
from streams.topology import Handlers

A, B = TopicPartition("a", 0), TopicPartition("b", 0)


class Clock:
    now = 1000

    def __call__(self) -> int:
        return self.now


def two_inputs(records: list[Any], **settings: Any) -> tuple[Task, Clock]:
    """Return a task that notes the records of topics ``a`` and ``b`` in the order of processing."""
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    builder.stream("a").merge(builder.stream("b")).foreach(lambda k, v: records.append((k, v)))
    return make(builder, **settings)


def make(
    builder: StreamsBuilder, *, coroutines: Coroutines | None = None, **settings: Any
) -> tuple[Task, Clock]:
    topology, clock = builder.build(), Clock()
    subtopology = topology.subtopologies[0]
    stores = {name: open_store(topology.stores[name], None) for name in subtopology.stores}
    environment = TaskEnvironment(clock=clock, coroutines=coroutines)
    task = Task(TaskId(0, 0), subtopology, stores, environment, TaskSettings(**settings))
    for source in subtopology.sources:
        for topic in source.topics:
            task.add_input(TopicPartition(topic, 0), source, InputStart(position=0))
    return task, clock


def give(task: Task, tp: TopicPartition, *times: int, end: int | None = None, first: int = 0) -> None:
    records: list[Any] = [
        (first + n, time, tp.topic.encode(), time.to_bytes(8, "big"), ()) for n, time in enumerate(times)
    ]
    after = first + len(times)
    task.add(tp, records, after, after if end is None else end)


def test_the_lowest_time_is_next() -> None:
    records: list[Any] = []
    task, _ = two_inputs(records)
    give(task, A, 10, 30, 20)
    give(task, B, 5, 25)
    assert task.process() == 5
    assert records == [("b", 5), ("a", 10), ("b", 25), ("a", 30), ("a", 20)]
    assert task.stream_time == 30


def test_an_input_not_fetched_yet_is_waited_for() -> None:
    """An input that is not fetched yet is waited for: a table is read before a stream, even if its records
    arrive later.
    """
    records: list[Any] = []
    task, _ = two_inputs(records)
    give(task, A, 100, 200)
    assert task.process() == 0, "nobody knows what is in b"
    give(task, B, 0, end=2)
    assert task.process() == 1, "the broker has another record of b"
    give(task, B, 0, first=1)
    assert task.process() == 3
    assert [key for key, _ in records] == ["b", "b", "a", "a"]


def test_an_input_that_is_empty_at_the_broker_is_not_waited_for() -> None:
    task, _ = two_inputs([])
    give(task, A, 100)
    task.add(B, [], 0, 0)
    assert task.process() == 1


def test_max_task_idle_waits_for_an_empty_input_for_a_while() -> None:
    task, clock = two_inputs([], max_idle_ms=50)
    give(task, A, 100)
    task.add(B, [], 0, 0)
    assert task.process() == 0
    clock.now += 49
    assert task.process() == 0
    clock.now += 1
    assert task.process() == 1
    give(task, A, 101, first=1)
    assert task.process() == 1, "it was waited for already"
    give(task, B, 1)
    give(task, A, 102, first=2)
    assert task.process() == 1, "b has spoken; it is waited for again"


def test_idle_minus_one_waits_for_nothing() -> None:
    task, _ = two_inputs([], max_idle_ms=-1)
    give(task, A, 100)
    assert task.process() == 1


def test_a_deadline_ends_a_slice_and_positions_stand_between_records() -> None:
    records: list[Any] = []
    builder = StreamsBuilder(key_serde=str, value_serde=int)

    def slow(key: str, value: int) -> None:
        records.append(value)
        clock.now += 1

    builder.stream("a").foreach(slow)
    task, clock = make(builder)
    give(task, A, *range(1000))
    done = task.process(clock.now + 10)
    assert 10 <= done < 1000
    assert task.flush().positions == {A: done}
    task.process()
    assert records == list(range(1000))


def test_positions_pass_gaps_when_everything_before_is_processed() -> None:
    """Control batches and compaction leave offsets without records."""
    task, _ = two_inputs([], max_idle_ms=-1)
    task.add(A, [(3, 1, b"a", bytes(8), ())], 9, 9)
    assert task.flush().positions[A] == 0
    task.process()
    assert task.flush().positions[A] == 9
    task.add(A, [], 12, 12)
    task.process()
    assert task.flush().positions[A] == 12


def test_a_bad_record_ends_the_task_and_is_named() -> None:
    task, _ = two_inputs([], max_idle_ms=-1)
    task.add(A, [(0, 1, b"k", bytes(8), ()), (1, 1, b"k", b"short", ())], 2, 2)
    with pytest.raises(SerializationError, match=r"Long: expected 8 bytes, got 5 \(a-0 offset 1\)"):
        task.process()


def test_log_and_continue_leaves_bad_records_out() -> None:
    records: list[Any] = []
    task, _ = two_inputs(records, max_idle_ms=-1, handlers=Handlers(deserialization=log_and_continue))
    task.add(A, [(0, 1, b"\xff", bytes(8), ()), (1, 1, b"k", b"short", ()), (2, 1, b"k", bytes(8), ())], 3, 3)
    assert task.process() == 1
    assert records == [("k", 0)]
    assert sum(metrics.dropped_records_total for metrics in task.metrics.values()) == 2


def test_an_error_of_the_users_names_the_record() -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    builder.stream("a").foreach(lambda key, value: 1 // (2 - value))
    task, _ = make(builder)
    give(task, A, 0, 1, 2, 3)
    with pytest.raises(
        ProcessingError, match=r"^task 0_0, record a-0 offset 2, node KSTREAM-FOREACH-0"
    ) as caught:
        task.process()
    assert "ZeroDivisionError: integer division or modulo by zero (" in str(caught.value)
    assert f"({__file__}, line " in str(caught.value)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert task.flush().positions == {A: 2}


def test_an_error_in_a_commit_names_the_node() -> None:
    """An error while a commit flushes a cached table names the node, since there is no record to name."""

    def fail(key: str, count: int) -> None:
        raise StopIteration  # which a future of asyncio would not take

    builder = StreamsBuilder(key_serde=str, value_serde=int)
    builder.stream("a").group_by_key().count().to_stream().foreach(fail, name="looker")
    task, _ = make(builder)
    give(task, A, 0)
    task.process()
    with pytest.raises(ProcessingError, match=r"^task 0_0, changes of tables.*, node looker: StopIteration"):
        task.flush()


def test_a_value_that_a_store_cannot_keep_is_named() -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    builder.stream("a").group_by_key().aggregate(
        set, lambda k, v, so_far: {print}, value_serde=list, store="s"
    )
    task, _ = make(builder)
    give(task, A, 0)
    with pytest.raises(
        SerializationError, match=r"store s cannot keep \{<.*print>\} under key b'a'.*s-changelog"
    ):
        task.process()


def test_an_error_in_a_schedule_or_a_processor_names_the_node() -> None:
    class Failing(Processor[str, int]):
        def init(self, context: ProcessorContext) -> None:
            super().init(context)
            context.schedule(10, lambda now: context.forward(Record("k", now, now)))

        def process(self, record: Record[str, int]) -> None:
            if record.value == 7:
                raise ValueError("seven")

    builder = StreamsBuilder(key_serde=str, value_serde=int)
    builder.stream("a").process(Failing, name="failing").map_values(lambda v: 1 // 0, name="below")
    task, _ = make(builder)
    give(task, A, 7)
    with pytest.raises(ProcessingError, match="record a-0 offset 0, node failing: ValueError: seven"):
        task.process()
    task, _ = make(builder)
    give(task, A, 3)
    with pytest.raises(ProcessingError, match="a schedule, node below: ZeroDivisionError"):
        task.process()


def test_an_extractor_that_gives_no_timestamp_is_named() -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    builder.stream("a", timestamp_extractor=lambda k, v, t: None, name="source").foreach(print)  # type: ignore[arg-type, return-value]
    task, _ = make(builder)
    give(task, A, 3)
    with pytest.raises(ProcessingError, match="record a-0 offset 0, node source: TypeError"):
        task.process()


def test_negative_timestamps_are_refused() -> None:
    task, _ = two_inputs([], max_idle_ms=-1)
    task.add(A, [(0, -1, b"k", bytes(8), ())], 1, 1)
    with pytest.raises(StreamsError, match="timestamp_extractor"):
        task.process()


@pytest.mark.parametrize("handler", [None, log_and_continue])
def test_what_cannot_be_serialized(handler: Any, caplog: pytest.LogCaptureFixture) -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    builder.stream("a").map_values(lambda value: "text" if value == 1 else value).to("out", name="sink")
    task, _ = make(builder, handlers=Handlers() if handler is None else Handlers(production=handler))
    give(task, A, 0, 1, 2)
    if handler is None:
        with pytest.raises(SerializationError, match="sink cannot serialize 'a', 'text'"):
            task.process()
    else:
        assert task.process() == 3
        assert len(task.take_output()["out"]) == 2
        assert task.metrics["sink"].dropped_records_total == 1
        assert "sink cannot serialize 'a', 'text'" in caplog.text
    assert task.take_output().keys() <= {"out"}


def test_slow_functions_have_the_clock_looked_at_for_each_record() -> None:
    """A task with slow functions looks at the clock for each record, so that it can be revoked soon."""
    builder, clocks = StreamsBuilder(key_serde=str, value_serde=int), list[Clock]()

    def slow(key: str, value: int) -> None:
        clocks[0].now += 50

    builder.stream("a").foreach(slow)
    task, clock = make(builder)
    clocks.append(clock)
    give(task, A, *range(1000))
    done = [task.process(clock.now + 100) for _ in range(5)]
    assert done[0] <= FIRST_RUN_LIMIT
    assert done[-1] == 2, "as many as fit into 100 ms"
