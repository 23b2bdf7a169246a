"""The processor API: forwarding, stores, metadata, punctuation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka_client import TopicPartition
from streams import KStream, Processor, ProcessorContext, Record, StreamsBuilder, TopologyError
from streams.runtime.task.environment import TaskEnvironment
from streams.runtime.task.input_start import InputStart
from streams.runtime.task.task import Task
from streams.runtime.task_id import TaskId
from streams.serdes import Long, String
from streams.state import KeyValueStore, StoreSpec
from streams.testing import TopologyTestDriver


class Deduplicate(Processor[str, int]):
    """Forwards a value per key once."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        store = context.store("seen")
        assert isinstance(store, KeyValueStore)
        self.values: KeyValueStore[str, int] = store

    def process(self, record: Record[str, int]) -> None:
        if self.values.get(record.key) != record.value:
            self.values.put(record.key, record.value, record.timestamp)
            self.context.forward(record)


class Sums(Processor[str, int]):
    """Forwards the sum at every tick of either clock."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.total = 0
        context.schedule(10, lambda now: self.tell("stream", now))
        self.cancel = context.schedule(100, lambda now: self.tell("wall", now), on="wall_clock")

    def process(self, record: Record[str, int]) -> None:
        self.total += record.value

    def tell(self, clock: str, now: int) -> None:
        self.context.forward(Record(clock, self.total, now))
        if now >= 1000:
            self.cancel()


def pipeline(supplier: Any, *stores: str) -> StreamsBuilder:
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    for name in stores:
        builder.add_store(StoreSpec(name=name, kind="key_value", key_serde=String(), value_serde=Long()))
    stream: KStream[str, int] = builder.stream("in")
    stream.process(supplier, stores=stores, name="node").to("out", name="sink")
    return builder


def test_a_processor_with_a_store() -> None:
    with TopologyTestDriver(pipeline(Deduplicate, "seen")) as driver:
        driver.input_topic("in").pipe_all([("a", 1), ("a", 1), ("b", 1), ("a", 2)])
        assert driver.output_topic("out").read_key_values() == [("a", 1), ("b", 1), ("a", 2)]
        assert dict(driver.key_value_store("seen").all()) == {"a": 2, "b": 1}


def test_a_store_must_be_named_at_the_node() -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    builder.stream("in").process(Deduplicate)
    with pytest.raises(TopologyError, match="has no store 'seen'"):
        TopologyTestDriver(builder)


def test_punctuation() -> None:
    """Stream time is aligned to 0, where it is due first, wall clock to the start; a jump fires once."""
    with TopologyTestDriver(pipeline(Sums), start=3) as driver:
        topic = driver.input_topic("in")
        for timestamp in (4, 12, 13, 47):
            topic.pipe_input("a", 1, timestamp)
        driver.advance_wall_clock(99)
        driver.advance_wall_clock(1)
        driver.advance_wall_clock(950)
        driver.advance_wall_clock(500)
        records = driver.output_topic("out").read_all()
    assert [(r.key, r.value, r.timestamp) for r in records] == [
        ("stream", 1, 4),
        ("stream", 2, 12),
        ("stream", 4, 47),
        ("wall", 4, 103),
        ("wall", 4, 1053),
    ]


def test_schedules_that_are_due_at_once_go_by_due_time_and_may_cancel_each_other() -> None:
    events: list[Any] = []

    class Look(Processor[str, int]):
        def init(self, context: ProcessorContext) -> None:
            super().init(context)
            assert context.record_metadata is None
            self.schedule("slow", 50)
            self.cancel_quick = self.schedule("quick", 20)
            self.schedule("second", 50)

        def schedule(self, name: str, interval: int) -> Any:
            return self.context.schedule(interval, lambda now: self.fired(name, now), on="wall_clock")

        def fired(self, name: str, now: int) -> None:
            assert self.context.record_metadata is None
            events.append((name, now))
            if now > 60:
                self.cancel_quick()

        def process(self, record: Record[str, int]) -> None:
            self.context.forward(record)

    with TopologyTestDriver(pipeline(Look)) as driver:
        driver.input_topic("in").pipe_input("a", 1, 5)
        for by in (20, 30, 15, 85):
            driver.advance_wall_clock(by)
    assert events == [
        ("quick", 20),
        *[("quick", 50), ("slow", 50), ("second", 50)],
        ("quick", 65),
        *[("slow", 150), ("second", 150)],
    ]


def test_parents_begin_and_end_first() -> None:
    events: list[str] = []

    class Look(Processor[str, int]):
        def __init__(self, name: str) -> None:
            self.name = name

        def init(self, context: ProcessorContext) -> None:
            super().init(context)
            events.append(f"{self.name} begins")

        def process(self, record: Record[str, int]) -> None:
            self.context.forward(record)

        def close(self) -> None:
            events.append(f"{self.name} ends")

    builder = StreamsBuilder(key_serde=str, value_serde=int)
    builder.stream("in").process(lambda: Look("parent")).process(lambda: Look("child")).to("out")
    with TopologyTestDriver(builder):
        pass
    assert events == ["parent begins", "child begins", "parent ends", "child ends"]


def test_metadata_times_and_children() -> None:
    events: list[Any] = []

    class Look(Processor[str, int]):
        def process(self, record: Record[str, int]) -> None:
            context = self.context
            assert context.record_metadata is not None
            events.append((context.task_id, context.record_metadata.offset, context.stream_time))
            context.forward(record.with_key("x").with_value(5), child="sink")
            with pytest.raises(TopologyError, match="no child 'else'"):
                context.forward(record, child="else")

        def close(self) -> None:
            events.append("closed")

    with TopologyTestDriver(pipeline(Look)) as driver:
        driver.input_topic("in").pipe_all([("a", 1), ("b", 2)], start=10, step=5)
        assert driver.output_topic("out").read_key_values() == [("x", 5), ("x", 5)]
    assert events == [("0_0", 0, 10), ("0_0", 1, 15), "closed"]


class Committing(Processor[str, int]):
    """Asks for a commit with each value of 1."""

    def process(self, record: Record[str, int]) -> None:
        if record.value == 1:
            self.context.commit()


def test_a_commit_that_is_asked_for_is_wanted_until_it_comes() -> None:
    (part,) = pipeline(Committing).build().subtopologies
    task = Task(TaskId(0, 0), part, {}, TaskEnvironment(clock=lambda: 0))
    tp = TopicPartition("in", 0)
    task.add_input(tp, part.sources[0], InputStart(position=0, end=2))
    for offset, value in enumerate((0, 1)):
        assert not task.wants_commit
        task.add(tp, [(offset, 0, b"k", Long().serialize(value), ())], offset + 1, 2)
        task.process()
    assert task.wants_commit
    assert task.needs_commit
    task.written(task.flush(), {})
    assert not task.wants_commit
    assert not task.needs_commit
    task.close()


def test_a_schedule_may_ask_for_a_commit_where_nothing_else_needs_one() -> None:
    class Ticking(Committing):
        def init(self, context: ProcessorContext) -> None:
            super().init(context)
            context.schedule(10, lambda now: context.commit(), on="wall_clock")

    now = 0
    (part,) = pipeline(Ticking).build().subtopologies
    task = Task(TaskId(0, 0), part, {}, TaskEnvironment(clock=lambda: now))
    task.punctuate()
    assert not task.needs_commit
    now = 10
    task.punctuate()
    assert task.wants_commit
    assert task.needs_commit
    task.close()


def test_processors_know_application_and_folder() -> None:
    events: list[Any] = []

    class Look(Processor[str, int]):
        def init(self, context: ProcessorContext) -> None:
            super().init(context)
            events.extend((context.application_id, context.state_dir))
            (context.state_dir / "mine").write_text("x")

        def process(self, record: Record[str, int]) -> None:
            events.append((self.context.state_dir / "mine").read_text())
            self.context.commit()

    with TopologyTestDriver(pipeline(Look), application_id="a") as driver:
        driver.input_topic("in").pipe_input("k", 1)
    application, folder, text = events
    assert (application, text) == ("a", "x")
    assert isinstance(folder, Path)
    assert not folder.exists()
