"""Foreign-key joins: their bytes held to Kafka's, printed by tests/java/ForeignKeys.java, and a whole run.

The rules are held in test_rules.py, names in test_describe.py.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from kafka_client import TopicPartition
from streams import Materialized, StreamsBuilder, TimeWindows, Window, Windowed
from streams.runtime.task.environment import TaskEnvironment
from streams.runtime.task.input_start import InputStart
from streams.runtime.task.settings import TaskSettings
from streams.runtime.task.task import Task
from streams.runtime.task_id import TaskId
from streams.serdes import String
from streams.serdes.foreign_key import (
    Instruction,
    Response,
    ResponseSerde,
    Subscription,
    SubscriptionSerde,
    combined_key,
    end_of_prefix,
)
from streams.serdes.murmur3 import murmur3_128
from streams.state import open_store
from streams.testing import TopologyTestDriver
from tests.support import java

GOLDEN = Path(__file__).parents[1] / "golden" / "foreign-keys"
HASH = murmur3_128(b"value")


def golden(name: str) -> list[str]:
    return (GOLDEN / f"{name}.txt").read_text().splitlines()


@java.needs_jar("kafka-streams")
def test_kafkas_bytes_are_these() -> None:
    sections = java.run_sections("ForeignKeys")
    if os.environ.get("REWRITE"):
        for name, text in sections.items():
            (GOLDEN / f"{name}.txt").write_text(text)
    assert sections == {path.stem: path.read_text() for path in GOLDEN.glob("*.txt")}


def test_hashes_are_kafkas() -> None:
    for line in golden("hashes"):
        length, hash = line.split(" ")
        data = bytes((at * 37 + int(length)) % 256 for at in range(int(length)))
        assert murmur3_128(data).hex() == hash, line


def test_subscriptions_are_kafkas() -> None:
    serde = SubscriptionSerde(String())
    subscriptions = [Subscription(hash, each, "key", 5) for each in Instruction for hash in (HASH, None)]
    subscriptions.append(Subscription(HASH, Instruction.DELETE_KEY_AND_PROPAGATE, "key", None))
    assert [serde.serialize(each).hex() for each in subscriptions] == golden("subscriptions")
    for each in subscriptions:
        assert serde.deserialize(serde.serialize(each)) == each
    with pytest.raises(ValueError, match="version 2"):
        serde.deserialize(b"\x82\x00")


def test_responses_are_kafkas() -> None:
    serde = ResponseSerde(String())
    responses = [Response(hash, value, None) for value in ("foreign", None) for hash in (HASH, None)]
    assert [serde.serialize(each).hex() for each in responses] == golden("responses")
    for each in responses:
        assert serde.deserialize(serde.serialize(each)) == each
    with pytest.raises(ValueError, match="version 1"):
        serde.deserialize(b"\x81")


def test_combined_keys_of_a_foreign_key_are_a_range() -> None:
    keys = [combined_key(foreign, b"k") for foreign in (b"", b"a", b"\xff", b"\xff\xff", b"aa")]
    for foreign in (b"", b"a", b"\xff", b"\xff\xff", b"aa"):
        prefix = combined_key(foreign, b"")
        assert [key for key in keys if prefix <= key < end_of_prefix(prefix)] == [combined_key(foreign, b"k")]


@pytest.mark.parametrize(("caching", "answers"), [(False, ["found", None]), (True, ["found"])])
def test_a_cached_row_that_comes_and_goes_between_commits(caching: bool, answers: list[str | None]) -> None:
    """A subscription reads a cached row before the row is flushed. If the row is deleted before the commit,
    the deletion is never forwarded and the left row's result stays. Kafka's caches skip a flush from nothing
    to nothing too.
    """
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    left, right = builder.table("l"), builder.table("r", store=Materialized(name="r", caching=caching))
    left.join(right, lambda x, y: f"{x}+{y}", foreign_key=lambda value: value).to_stream().to("out")
    topology = builder.build()
    part = next(each for each in topology.subtopologies if "r" in each.topics)
    (subscriptions,) = set(part.topics) - {"r"}
    stores = {name: open_store(topology.stores[name], None) for name in part.stores}
    task = Task(TaskId(1, 0), part, stores, TaskEnvironment(clock=lambda: 0), TaskSettings(max_idle_ms=-1))
    for source in part.sources:
        task.add_input(TopicPartition(source.topics[0], 0), source, InputStart(position=0))
    wish = Subscription(HASH, Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE, "left", 0)
    subscription = SubscriptionSerde(String()).serialize(wish)
    task.add(TopicPartition("r", 0), [(0, 1, b"k", b"found", ()), (1, 3, b"k", None, ())], 2, 2)
    task.add(TopicPartition(subscriptions, 0), [(0, 2, b"k", subscription, ())], 1, 1)
    assert task.process() == 3
    task.flush()
    (rows,) = task.take_placed_output().values()
    assert [ResponseSerde(String()).deserialize(row[2]).value for row in rows] == answers


@pytest.mark.parametrize("newest", [98, 99, 100, 1_000_000])
def test_a_window_past_retention_joins_no_more(newest: int) -> None:
    """A window past its retention joins no more, whether or not the application has restarted. The foreign
    table is of windows and has no cache.
    """
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    store = Materialized(name="windows", caching=False, retention=100)
    windows: Any = builder.stream("in").group_by_key().windowed_by(TimeWindows(1))
    days = windows.reduce(lambda x, y: x + y, store=store).map_values(str.upper)
    orders = builder.table("orders")
    joined = orders.left_join(
        days, lambda order, day: f"{order}{day}", foreign_key=lambda order: Windowed(order, Window(0, 1))
    )
    joined.to_stream().to("out")
    with TopologyTestDriver(builder) as driver:
        driver.pipe("in", b"k", b"x", 0)
        driver.pipe("in", b"k", b"y", newest)
        driver.pipe("orders", b"order", b"k", 5)
        output = driver.output_topic("out").read_key_values()
    assert output[-1] == ("order", "kX" if newest < 100 else "kNone")
