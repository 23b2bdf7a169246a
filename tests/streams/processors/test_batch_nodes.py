"""Batch nodes: what a batch is, what comes of it, and of errors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from streams import Record, StreamsBuilder, TopologyError, log_and_continue
from streams.errors import ProcessingError
from streams.runtime.task.task import Task
from streams.testing import TopologyTestDriver
from streams.topology import Handlers
from tests.streams.runtime.task.test_task import A, give, make
from tests.streams.runtime.test_async_applications import row, written
from tests.streams.support.running import NewName, make_topics, produce, run, start
from tests.support.logd_process import LogdProcess

NODE = "KSTREAM-BATCH-0000000001"


def driven(function: Callable[..., Any], handlers: Handlers | None = None, **how: Any) -> TopologyTestDriver:
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    builder.stream("in").map_values_batch(function, **how).to("out", value_serde=int)
    return TopologyTestDriver(builder, handlers=handlers)


def sizes_of(batches: list[int], outputs: list[Any], **how: Any) -> Task:
    def noted(values: list[int]) -> list[int]:
        batches.append(len(values))
        return [-value for value in values]

    builder = StreamsBuilder(key_serde=str, value_serde=int)
    negative = builder.stream("a").map_values_batch(noted, **how)
    negative.foreach(lambda key, value: outputs.append(value))
    task, _ = make(builder)
    return task


def test_a_batch_ends_at_its_bound_and_with_the_records_at_hand() -> None:
    batches: list[int] = []
    outputs: list[Any] = []
    task = sizes_of(batches, outputs, max_records=100)
    give(task, A, *range(250))
    task.process()
    assert batches == [100, 100, 50]
    assert outputs == [-value for value in range(250)]
    assert (task.held_records, task.flush().positions) == (0, {A: 250})


def test_a_batch_ends_with_a_commit() -> None:
    """Changes of a cached table come with the commit, and no record waits for the next."""
    batches: list[int] = []
    builder = StreamsBuilder(key_serde=str, value_serde=int)

    def noted(values: list[int]) -> list[int]:
        batches.append(len(values))
        return values

    counts = builder.stream("a").group_by_key().count(store="counts")
    counts.to_stream().map_values_batch(noted).to("out", value_serde=int)
    task, _ = make(builder)
    records: list[Any] = [(n, n, str(n % 5).encode(), bytes(8), ()) for n in range(8)]
    task.add(A, records, 8, 8)
    task.process()
    assert batches == []
    task.flush()
    assert batches == [5]
    assert len(task.take_output()["out"]) == 5


def test_values_keys_times_and_headers() -> None:
    with driven(lambda keys, values: [len(keys) * value for value in values]) as driver:
        topic = driver.input_topic("in")
        topic.pipe_many([("a", 1), (None, 2), ("a", 3)], start=5, step=10)
        topic.pipe_input("b", 4, 7, (("h", b"x"),))
        assert driver.output_topic("out").read_all() == [
            Record("a", 3, 5),
            Record(None, 6, 15),
            Record("a", 9, 25),
            Record("b", 4, 7, (("h", b"x"),)),
        ], "a batch of three, and one of one"


def test_records_may_have_other_keys() -> None:
    def renamed(records: list[Record[str, int]]) -> list[Any]:
        return [record.with_key(record.key * 2) if record.value > 1 else 0 for record in records]

    builder = StreamsBuilder(key_serde=str, value_serde=int)
    renamed_stream = builder.stream("in").map_batch(renamed, name="renamed")
    renamed_stream.group_by_key(key_serde=str, value_serde=int).count(store="n").to_stream().to("out")
    assert builder.build().repartition_topics == ["n-repartition"]
    with TopologyTestDriver(builder) as driver:
        driver.input_topic("in").pipe_many([("a", 1), ("b", 2)])
        assert driver.output_topic("out").read_key_values() == [("a", 1), ("bb", 1)]


def test_numpy_arrays() -> None:
    numpy = pytest.importorskip("numpy")
    with driven(lambda values: numpy.array(values) * 2) as driver:
        driver.input_topic("in").pipe_many([("a", 1), ("b", 2)])
        assert driver.output_topic("out").read_key_values() == [("a", 2), ("b", 4)]


def test_each_record_of_a_batch_that_raises_is_looked_at_by_itself() -> None:
    calls: list[list[int]] = []

    def fussy(values: list[int]) -> list[int]:
        calls.append(values)
        if 2 in values:
            raise ValueError("2 is bad")
        return values

    handlers = Handlers(processing=log_and_continue, dead_letter_topic="dead")
    with driven(fussy, handlers) as driver:
        driver.input_topic("in").pipe_many([("a", 1), ("b", 2), ("c", 3)], start=4)
        assert driver.output_topic("out").read_key_values() == [("a", 1), ("c", 3)]
        (letter,) = driver.output_topic("dead", key_serde=str, value_serde=int).read_all()
        assert (letter.key, letter.value, letter.timestamp) == ("b", 2, 4)
        assert dict(letter.headers)["__streams.errors.offset"] == b"1"
        assert driver.metrics()[NODE].dropped_records_total == 1
    assert calls == [[1, 2, 3], [1], [2], [3]]
    with driven(fussy) as driver:
        with pytest.raises(
            ProcessingError, match=rf"record in-0 offset 1, node {NODE}: ValueError: 2 is bad \(.*, line "
        ):
            driver.input_topic("in").pipe_many([("a", 1), ("b", 2), ("c", 3)])


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda values: values[1:], "gave 2 results for 3 records: it has to return one for each"),
        (lambda values: None, "gave a NoneType for 3 records: it has to return a list of as many"),
        (lambda values: "abc", "gave a str for 3 records"),
    ],
)
def test_another_number_of_results_ends_the_task_whatever_the_handler(
    function: Callable[..., Any], message: str
) -> None:
    """A batch with another number of results ends the task. It is unknown which record lacks one, so none may
    be skipped.
    """
    with driven(function, Handlers(processing=log_and_continue)) as driver:
        with pytest.raises(
            ProcessingError, match=f"record in-0 offset 0, node {NODE}: BatchMismatch: .*{message}"
        ):
            driver.input_topic("in").pipe_many([("a", 1), ("b", 2), ("c", 3)])


@pytest.mark.parametrize(
    ("function", "how", "message"),
    [
        (len, {"max_records": 0}, "max_records is 0"),
        (len, {"as_": "pandas"}, "as_ is 'pandas', it may be one of"),
        (5, {}, "takes a function of a batch, not 5"),
    ],
)
def test_settings_are_checked(function: Any, how: dict[str, Any], message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        driven(function, **how)


# -- Arrow


@dataclass
class Reading:
    sensor: str
    degrees: float


class Point(msgspec.Struct):
    x: int


def test_arrow_batches() -> None:
    pa = pytest.importorskip("pyarrow")
    pc = pytest.importorskip("pyarrow.compute")
    outputs: list[Any] = []

    def fahrenheit(batch: Any) -> Any:
        outputs.append([(field.name, str(field.type)) for field in batch.schema])
        return pc.add(pc.multiply(pc.struct_field(batch["value"], "degrees"), 1.8), 32)

    builder = StreamsBuilder(key_serde=str, value_serde=Reading)
    builder.stream("in").map_values_batch(fahrenheit, as_="arrow").to("out", value_serde=float)
    with TopologyTestDriver(builder) as driver:
        driver.input_topic("in").pipe_many([("a", Reading("s", 10.0)), (None, Reading("t", 20.0))], start=7)
        assert driver.output_topic("out").read_all() == [Record("a", 50.0, 7), Record(None, 68.0, 7)]
    assert outputs == [
        [
            ("key", "string"),
            ("value", "struct<sensor: string, degrees: double>"),
            ("timestamp", "timestamp[ms, tz=UTC]"),
        ]
    ]

    def moved(batch: Any) -> Any:
        later = pc.add(batch["timestamp"].cast(pa.int64()), 5).cast(pa.timestamp("ms", "UTC"))
        return pa.RecordBatch.from_arrays(
            [batch["key"], pc.struct_field(batch["value"], "x"), later], ["key", "y", "timestamp"]
        )

    builder = StreamsBuilder(key_serde=str, value_serde=Point)
    builder.stream("in").map_batch(moved, as_="arrow").to("out", key_serde=str, value_serde=dict)
    with TopologyTestDriver(builder) as driver:
        driver.input_topic("in").pipe_many([("a", Point(1)), ("b", Point(2))])
        assert driver.output_topic("out").read_all() == [Record("a", {"y": 1}, 5), Record("b", {"y": 2}, 5)]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda batch: batch.slice(1), "gave 1 rows for 2 records"),
        (lambda batch: [1, 2], "gave a list, not a pyarrow RecordBatch, Table or Array of 2 rows"),
    ],
)
def test_arrow_results_are_checked(function: Callable[..., Any], message: str) -> None:
    pytest.importorskip("pyarrow")
    with driven(function, as_="arrow") as driver:
        with pytest.raises(ProcessingError, match=message):
            driver.input_topic("in").pipe_many([("a", 1), ("b", 2)])


# -- over a broker


def test_batches_of_an_application(logd: LogdProcess, tmp_path: Path, new_name: NewName) -> None:
    """The available records of one partition are one batch, before a coroutine as well."""
    name = new_name("batches")
    batches: list[list[int]] = []

    def noted(values: list[int]) -> list[int]:
        batches.append(values)
        return values

    async def later(value: int) -> int:
        await asyncio.sleep(0.001)
        return value

    async def case() -> None:
        await make_topics(logd.bootstrap, **{f"{name}-in": 2, f"{name}-out": 1})
        for partition in (0, 1):
            rows = (row(f"k{n}", 2 * n + partition) for n in range(300))
            await produce(logd.bootstrap, f"{name}-in", *rows, partition=partition)
        builder = StreamsBuilder(key_serde=str, value_serde=int)
        numbers = builder.stream(f"{name}-in").map_values_batch(noted, max_records=50)
        numbers.map_values_async(later).to(f"{name}-out", value_serde=int)
        settings: Any = {"processing_guarantee": "exactly_once_v2"}
        async with start(builder.build(), logd.bootstrap, name, tmp_path, **settings) as app:
            await app.wait_until_caught_up()
        assert sorted(value for _, value in await written(logd.bootstrap, name)) == list(range(600))

    run(case)
    assert max(map(len, batches)) > 1
    assert all(len({value % 2 for value in batch}) == 1 and len(batch) <= 50 for batch in batches)
