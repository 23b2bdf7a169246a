"""Stores that a processor keeps on every instance (`add_global_store`), in the test driver and live."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streams import Processor, Record, StreamsBuilder, StreamsError, Topology, TopologyError
from streams.runtime.restore.global_checkpoint import read_checkpoint
from streams.state import KeyValueStore, StoreSpec
from streams.testing import TopologyTestDriver
from tests.streams.support.running import NewName, make_topics, produce, start
from tests.support.logd_process import LogdProcess

SEEN = StoreSpec(name="seen", kind="key_value", key_serde=str, value_serde=int)


class Count(Processor[str, str]):
    """Counts records by their value: another one than the topic's key, and not the same if applied twice."""

    def process(self, record: Record[str, str]) -> None:
        if record.value == "fail":
            raise ValueError("no such value")
        store = store_of(self)
        store.put(record.value, (store.get(record.value) or 0) + 1)


class Lookup(Processor[str, str]):
    """Forwards how often the value was seen."""

    def process(self, record: Record[str, str]) -> None:
        self.context.forward(record.with_value(store_of(self).get(record.value) or 0))


def store_of(processor: Processor[Any, Any]) -> KeyValueStore[str, int]:
    store = processor.context.store("seen")
    assert isinstance(store, KeyValueStore)
    return store


def topology(name: str = "") -> Topology:
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    builder.add_global_store(SEEN, f"{name}all", Count)
    builder.stream(f"{name}in").process(Lookup).to(f"{name}out", value_serde=int)
    return builder.build()


def by_hand() -> Topology:
    built = Topology(key_serde=str, value_serde=str)
    built.add_source("KSTREAM-SOURCE-0000000002", "in")
    built.add_global_store(SEEN, "KSTREAM-SOURCE-0000000000", "all", "KTABLE-SOURCE-0000000001", Count)
    built.add_processor("KSTREAM-PROCESSOR-0000000003", Lookup, "KSTREAM-SOURCE-0000000002")
    return built.add_sink("KSTREAM-SINK-0000000004", "out", "KSTREAM-PROCESSOR-0000000003", value_serde=int)


@pytest.mark.parametrize("build", [topology, by_hand])
def test_processors_read_what_another_keeps(build: Any) -> None:
    with TopologyTestDriver(build()) as driver:
        everything = driver.input_topic("all")
        everything.pipe_all([("a", "x"), ("b", "x"), ("a", "y")], start=5)
        driver.input_topic("in").pipe_all([("k", "x"), ("k", "y"), ("k", "z")])
        assert driver.output_topic("out").read_key_values() == [("k", 2), ("k", 1), ("k", 0)]
        assert [time for _, _, time in driver.store("seen").scan()] == [5, 5]
        assert not [topic for topic in driver.topology.stores.values() if topic.logged]
        with pytest.raises(StreamsError, match=r"KTABLE-SOURCE-0000000001.*offset 3 of all-0: ValueError"):
            everything.pipe_input("a", "fail")


def test_a_topology_made_by_hand_is_the_builders() -> None:
    theirs = by_hand().subtopologies
    assert [part.is_global for part in theirs] == [False, True]
    assert {part.is_global: part.topics for part in theirs} == {
        part.is_global: part.topics for part in topology().subtopologies
    }


def test_a_processor_is_not_given_a_global_store() -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    builder.add_global_store(SEEN, "all", Count)
    builder.stream("in").process(Lookup, stores=["seen"], name="lookup")
    with pytest.raises(TopologyError, match=r"lookup cannot be given the store 'seen'.*out of stores="):
        builder.build()


def test_the_processor_has_no_schedules() -> None:
    class Scheduling(Count):
        def init(self, context: Any) -> None:
            context.schedule(1, print)

    builder = StreamsBuilder(key_serde=str, value_serde=str)
    builder.add_global_store(SEEN, "all", Scheduling)
    builder.stream("in").to("out")
    with pytest.raises(TopologyError, match="cannot schedule"):
        TopologyTestDriver(builder)


async def test_every_record_counts_once_over_restarts(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    name = new_name("global-processor")
    topics = {f"{name}all": 2, f"{name}in": 1, f"{name}out": 1}

    async def counts(expected: dict[str, int], *, kill: bool = False) -> None:
        app = start(topology(name), logd.bootstrap, name, tmp_path)
        async with app:
            (store,) = app.stores("seen")
            assert dict(store.all()) == expected  # type: ignore[attr-defined]
            (checkpoint,) = (tmp_path / name).glob("**/.checkpoint")
            if kill:  # What a kill would leave says nothing of the topic: all of it is read again.
                assert not read_checkpoint(checkpoint).offsets
                left = checkpoint.read_bytes()
        if kill:
            checkpoint.write_bytes(left)

    await make_topics(logd.bootstrap, **topics)
    await produce(logd.bootstrap, f"{name}all", (b"a", b"x"), (b"b", b"x"), (None, b"x"))
    await produce(logd.bootstrap, f"{name}all", (b"c", b"y"), partition=1)
    async with start(topology(name), logd.bootstrap, name, tmp_path) as app:
        await produce(logd.bootstrap, f"{name}in", (b"k", b"x"))
        await app.wait_until_caught_up()
    await counts({"x": 2, "y": 1})
    await produce(logd.bootstrap, f"{name}all", (b"a", b"x"))
    await counts({"x": 3, "y": 1}, kill=True)
    await counts({"x": 3, "y": 1})
