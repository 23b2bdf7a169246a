"""Topics and partitions chosen for each record, prints, and processors of values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka_client import TopicPartition
from streams import (
    FixedKeyProcessor,
    FixedKeyRecord,
    Record,
    RecordContext,
    StreamsBuilder,
    StreamsError,
)
from streams.errors import ProcessingError
from streams.processors.metrics import NodeMetrics
from streams.runtime.task.environment import TaskEnvironment
from streams.runtime.task.input_start import InputStart
from streams.runtime.task.task import Task
from streams.runtime.task_id import TaskId
from streams.serdes import String
from streams.state import StoreSpec, open_store
from streams.testing import TopologyTestDriver
from streams.topology import Topology

IN = TopicPartition("in", 0)


def task_of(topology: Topology, *, partitions: int = 3) -> Task:
    stores = {name: open_store(spec, None) for name, spec in topology.stores.items()}
    task = Task(
        TaskId(0, 0),
        topology.subtopologies[0],
        stores,
        TaskEnvironment(clock=lambda: 0, partition_count=lambda topic: partitions),
    )
    task.add_input(IN, topology.subtopologies[0].sources[0], InputStart(position=0, end=0))
    return task


def give(task: Task, *values: str) -> None:
    records = [(n, n, b"k", value.encode(), ()) for n, value in enumerate(values)]
    task.add(IN, records, len(records), len(records))  # type: ignore[arg-type]
    task.process()


def test_each_record_goes_to_the_topic_chosen_for_it() -> None:
    contexts: list[RecordContext] = []

    def choose(key: str, value: str, context: RecordContext) -> str:
        contexts.append(context)
        return f"topic-{value}"

    builder = StreamsBuilder(key_serde=str, value_serde=str)
    builder.stream("in").to(choose)
    with TopologyTestDriver(builder) as driver:
        driver.input_topic("in").pipe_input("k", "a", 7, (("h", b"1"),))
        driver.input_topic("in").pipe_input("k", "b", 8)
        assert driver.output_topic("topic-a", key_serde=str, value_serde=str).read_key_values() == [
            ("k", "a")
        ]
        assert driver.output_topic("topic-b", key_serde=str, value_serde=str).read_output().timestamp == 8
    assert contexts[0] == RecordContext("in", 0, 0, 7, (("h", b"1"),)) and contexts[1].offset == 1


def test_a_chosen_topic_must_be_a_name() -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    builder.stream("in").to(lambda key, value, context: None, name="sink")  # type: ignore[arg-type, return-value]
    with pytest.raises(StreamsError, match=r"^sink: the topic chosen for a record is None"):
        give(task_of(builder.build()), "a")


@pytest.mark.parametrize(
    ("answer", "placed", "by_key"),
    [
        (2, {("out", 2)}, False),
        ([0, 1, 1], {("out", 0), ("out", 1)}, False),
        (None, set(), True),
        ((), set(), False),
    ],
)
def test_a_partitioner_chooses_one_partition_several_none_or_leaves_it(
    answer: Any, placed: set[tuple[str, int]], by_key: bool
) -> None:
    arguments: list[tuple[Any, ...]] = []

    def partitioner(topic: str, key: str, value: str, partitions: int) -> Any:
        arguments.append((topic, key, value, partitions))
        return answer

    builder = StreamsBuilder(key_serde=str, value_serde=str)
    builder.stream("in").to("out", partitioner=partitioner, name="sink")
    task = task_of(builder.build())
    give(task, "a")
    assert arguments == [("out", "k", "a", 3)]
    assert task.take_placed_output() == {each: [(0, b"k", b"a", ())] for each in placed}
    assert task.take_output() == ({"out": [(0, b"k", b"a", ())]} if by_key else {})
    sent = bool(placed) or by_key
    assert task.metrics["sink"] == NodeMetrics(process_total=int(sent), dropped_records_total=int(not sent))


def test_a_partition_that_is_not_there_is_named() -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    builder.stream("in").to("out", partitioner=lambda *args: 3, name="sink")
    with pytest.raises(StreamsError, match=r"^sink: its partitioner chose partition 3 of 'out', which has 3"):
        give(task_of(builder.build()), "a")


def test_a_repartition_topic_has_the_partitions_and_the_partitioner_it_is_given() -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    stream = builder.stream("in").repartition(name="r", partitions=5, partitioner=lambda *args: args[3] - 1)
    stream.to("out")
    topology = builder.build()
    assert topology.source_of("r-repartition").partitions == 5
    task = task_of(topology)
    give(task, "a")
    assert task.take_placed_output().keys() == {("r-repartition", 2)}
    with TopologyTestDriver(builder) as driver:
        driver.input_topic("in").pipe_input("k", "v")
        assert driver.output_topic("out").read_key_values() == [("k", "v")]


def test_records_are_printed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    stream = builder.stream("in")
    stream.print()
    stream.print(label="told", mapper=lambda key, value: f"{value}{key}")
    stream.print(path=tmp_path / "lines", label="file")
    with TopologyTestDriver(builder) as driver:
        driver.input_topic("in").pipe_all([("a", "1"), ("b", None)])
        assert (tmp_path / "lines").read_text() == "[file]: a, 1\n[file]: b, None\n"
    assert capsys.readouterr().out.startswith("[KSTREAM-SOURCE-0000000000]: a, 1\n[told]: 1a\n")


class Numbered(FixedKeyProcessor[str, str]):
    """Puts a number per key before values; leaves empty ones out."""

    def process(self, record: FixedKeyRecord[str, str]) -> None:
        store: Any = self.context.store("numbers")
        number = str(int(store.get(record.key) or "0") + 1)
        store.put(record.key, number, record.timestamp)
        if record.value:
            later = record.with_value(number + record.value).with_timestamp(record.timestamp + 1)
            self.context.forward(later.with_headers((("h", b""),)))


def test_processors_of_values_keep_keys_and_need_no_repartition_topic() -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    spec = StoreSpec(name="numbers", kind="key_value", key_serde=String(), value_serde=String())
    stream = builder.stream("in").process_values(Numbered, stores=[spec])
    stream.group_by_key(value_serde=str).count(store="counts")
    stream.to("out", value_serde=str)
    topology = builder.build()
    assert topology.repartition_topics == []
    with TopologyTestDriver(topology) as driver:
        driver.input_topic("in").pipe_all([("a", "x"), ("a", ""), ("a", "y")])
        out = driver.output_topic("out").read_all()
        assert out == [Record("a", "1x", 1, (("h", b""),)), Record("a", "3y", 1, (("h", b""),))]
        assert driver.key_value_store("counts").get("a") == 2


def test_a_processor_of_values_cannot_forward_other_keys() -> None:
    class Rekeying(FixedKeyProcessor[str, str]):
        def process(self, record: FixedKeyRecord[str, str]) -> None:
            self.context.forward(Record("other", record.value, record.timestamp))

    builder = StreamsBuilder(key_serde=str, value_serde=str)
    builder.stream("in").process_values(Rekeying, name="bad").to("out", value_serde=str)
    with pytest.raises(
        ProcessingError, match=r"bad: TypeError: bad forwards a Record: process_values\(\) keeps"
    ):
        give(task_of(builder.build()), "a")
