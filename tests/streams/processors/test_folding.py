"""An aggregation that is folded into its store gives what it gives by a lookup and an update per record:
state, positions, counts, output, and the record that an error names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_client import TopicPartition
from streams import KGroupedStream, KTable, StreamsBuilder, TimeWindows
from streams.errors import ProcessingError
from streams.runtime.task.environment import TaskEnvironment
from streams.runtime.task.input_start import InputStart
from streams.runtime.task.task import Task
from streams.runtime.task_id import TaskId
from streams.state import CachedStore, open_store
from streams.state.entries import Folding

BAD = 7
A, B = TopicPartition("a", 0), TopicPartition("b", 0)
Given = list[tuple[int, str | None, int | None]]


def add(old: int, new: int) -> int:
    if new == BAD:
        raise ValueError("seven")
    return old + new


def append(key: str, value: int | None, old: list[int]) -> list[int]:
    old.append(add(0, value or 0))
    return old


def key_of(key: Any, value: Any) -> str:
    name = str(getattr(key, "key", key))
    if name == "bad at the commit":
        raise KeyError(name)
    return name


WAYS: dict[str, Callable[[KGroupedStream[str, int]], KTable[Any, Any]]] = {
    "count": lambda grouped: grouped.count(store="kept"),
    "reduce": lambda grouped: grouped.reduce(add, store="kept"),
    "aggregate": lambda grouped: grouped.aggregate(list, append, store="kept", value_serde=list),
    "tumbling": lambda grouped: grouped.windowed_by(TimeWindows(10, grace=5)).reduce(add, store="kept"),
    "hopping": lambda grouped: grouped.windowed_by(TimeWindows(10, grace=5, advance=4)).count(store="kept"),
    "mutable in windows": lambda grouped: grouped.windowed_by(TimeWindows(10)).aggregate(
        list, append, store="kept", value_serde=list
    ),
}


def made(way: str) -> Task:
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    both = builder.stream("a").merge(builder.stream("b"))
    table = WAYS[way](both.group_by_key())
    output = table.to_stream(key=key_of).filter(lambda key, value: key != "left out")
    output.map_values(str).to("out", key_serde=str, value_serde=str)
    topology = builder.build()
    (subtopology,) = topology.subtopologies
    stores = {name: open_store(topology.stores[name], None) for name in subtopology.stores}
    task = Task(TaskId(0, 0), subtopology, stores, TaskEnvironment(clock=lambda: 1000))
    for source in subtopology.sources:
        for topic in source.topics:
            task.add_input(TopicPartition(topic, 0), source, InputStart(position=0))
    return task


def fed(task: Task, tp: TopicPartition, records: Given) -> None:
    rows = [
        (
            offset,
            time,
            None if key is None else key.encode(),
            None if value is None else value.to_bytes(8, "big"),
            (),
        )
        for offset, (time, key, value) in enumerate(records)
    ]
    task.add(tp, rows, len(rows), len(rows))


def outcome(way: str, a: Given, b: Given) -> dict[str, Any]:
    """Return all that can be seen of a task that has processed these records, or as many as it can, and
    commits.
    """
    task = made(way)
    fed(task, A, a)
    fed(task, B, b)
    effects: dict[str, Any] = {"error": None}
    try:
        task.process()
    except ProcessingError as error:
        effects["error"] = str(error)
    try:
        flush = task.flush()
        effects["changes"], effects["positions"] = flush.changes, flush.positions
    except ProcessingError as error:
        effects["error at the commit"] = str(error)
    effects["counts"], effects["stream time"] = task.metrics, task.stream_time
    effects["output"] = task.take_output()
    return effects


@contextmanager
def not_folded() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CachedStore, "folding", lambda store, add, counts=False: None)
        yield


KEYS = st.sampled_from([None, "a", "b", "left out", "bad at the commit"])
RECORDS = st.lists(st.tuples(st.integers(0, 60), KEYS, st.none() | st.integers(0, BAD + 1)), max_size=30)


@pytest.mark.parametrize("way", WAYS)
@given(a=RECORDS, b=RECORDS)
def test_they_are_as_by_lookup_and_update(way: str, a: Given, b: Given) -> None:
    folded = outcome(way, a, b)
    with not_folded():
        updated = outcome(way, a, b)
    assert folded == updated


@pytest.mark.parametrize("way", WAYS)
def test_values_that_cannot_change_are_folded(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Folding | None] = []
    folding = CachedStore.folding

    def noted(store: CachedStore, add: Callable[[Any, Any, Any], Any], *, counts: bool) -> Folding | None:
        made.append(folding(store, add, counts=counts))
        return made[-1]

    monkeypatch.setattr(CachedStore, "folding", noted)
    outcome(way, [(1, "a", 1)], [])
    assert {each is not None for each in made} == {"mutable" not in way and way != "aggregate"}
