"""The story of the bug: an aggregator changed its aggregate in place, as it may. The store behind `to_table`
had been given that very object with the last commit, so it showed counts that no commit had covered yet: a
join with it saw what had not been forwarded, and wrote out what nobody could compute again after a kill.

A store hands out nothing by which it can be changed, and keeps nothing that others can change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from kafka_client.topic_partition import TopicPartition
from streams import Materialized, Processor, Record, StreamsBuilder
from streams.runtime.task.task import Task
from streams.serdes import Json, MessagePack, Serde, String, is_immutable
from streams.state import KeyValueStore, MemoryBackend, StoreSpec
from streams.testing import TopologyTestDriver
from tests.streams.runtime.task.test_task import make

Value = dict[str, Any]
JSON = Json(dict)


class Feed:
    """A task without a commit in between; topics get JSON values."""

    def __init__(self, builder: StreamsBuilder) -> None:
        self.task, _ = make(builder, max_idle_ms=-1)
        self._offset = 0

    def pipe(self, topic: str, key: str, value: Value) -> None:
        self._offset += 1
        record = (self._offset, self._offset, key.encode(), JSON.serialize(value), ())
        self.task.add(TopicPartition(topic, 0), [record], self._offset + 1, self._offset + 1)
        self.task.process()

    def commit(self) -> None:
        self.task.written(self.task.flush(), {})

    def written(self, topic: str) -> list[Any]:
        return [JSON.deserialize(row[2] or b"") for row in self.task.take_output().get(topic, [])]

    def store(self, name: str) -> KeyValueStore[str, Any]:
        store = self.task.stores[name]
        assert isinstance(store, KeyValueStore)
        return store


def builder_of_json() -> StreamsBuilder:
    return StreamsBuilder(key_serde=str, value_serde=dict)


def add(key: str, value: Value, total: Value) -> Value:
    total["sum"] = total.get("sum", 0) + value["n"]
    return total


@pytest.mark.parametrize("caching", [True, False])
def test_a_table_of_an_aggregates_updates_waits_for_the_commit(caching: bool) -> None:
    builder = builder_of_json()
    totals = builder.stream("in").group_by_key().aggregate(dict, add, value_serde=dict, store="totals")
    copy = totals.to_stream().to_table(store=Materialized(name="copy", caching=caching))
    builder.stream("asked").join(copy, lambda value, total: total).to("answers")
    feed = Feed(builder)
    feed.pipe("in", "a", {"n": 1})
    feed.commit()
    feed.pipe("in", "a", {"n": 10})
    feed.pipe("asked", "a", {})
    assert feed.store("copy").get("a") == {"sum": 1}
    assert feed.written("answers") == [{"sum": 1}]
    feed.commit()
    assert feed.store("copy").get("a") == {"sum": 11}


@pytest.mark.parametrize("caching", [True, False])
def test_what_is_forwarded_is_not_what_the_store_keeps(caching: bool) -> None:
    """An operator that changes a forwarded value in place does not change the store's value."""

    def spoil(value: Value) -> Value:
        value["sum"] = -1
        return value

    builder = builder_of_json()
    store = Materialized(name="totals", caching=caching)
    totals = builder.stream("in").group_by_key().aggregate(dict, add, value_serde=dict, store=store)
    totals.to_stream().map_values(spoil).to("out")
    with TopologyTestDriver(builder) as driver:
        driver.input_topic("in", value_serde=dict).pipe_all([("a", {"n": 1}), ("a", {"n": 2})])
        assert driver.key_value_store("totals").get("a") == {"sum": 3}


def test_a_joiner_may_change_what_it_is_given() -> None:
    def joiner(value: Value, total: Value) -> Value:
        total["asked"] = True
        return total

    builder = builder_of_json()
    table = builder.table("table", store="table")
    builder.stream("asked").join(table, joiner).to("answers")
    feed = Feed(builder)
    feed.pipe("table", "a", {"n": 1})
    feed.pipe("asked", "a", {})
    assert feed.written("answers") == [{"n": 1, "asked": True}]
    assert feed.store("table").get("a") == {"n": 1}


def test_the_first_value_of_a_reduction_belongs_to_others_too() -> None:
    """A reducer that changes its aggregate in place does not change the record that the table stored."""

    def reducer(so_far: Value, value: Value) -> Value:
        so_far["n"] += value["n"]
        return so_far

    builder = builder_of_json()
    stream = builder.stream("in")
    stream.filter(lambda key, value: value["n"] == 1).to_table(store="first")
    stream.group_by_key().reduce(reducer, store="sums")
    feed = Feed(builder)
    feed.pipe("in", "a", {"n": 1})
    feed.pipe("in", "a", {"n": 2})
    assert feed.store("first").get("a") == {"n": 1}
    assert feed.store("sums").get("a") == {"n": 3}


def test_a_record_in_two_aggregates_is_two_values() -> None:
    """Two aggregators that keep a record's value, and change it later, each have their own copy."""

    def last(key: str, value: Value, so_far: Value) -> Value:
        so_far.setdefault("first", value)["n"] += 1
        return so_far

    builder = builder_of_json()
    grouped = builder.stream("in").group_by_key()
    for name in ("one", "two"):
        grouped.aggregate(dict, last, value_serde=dict, store=name)
    feed = Feed(builder)
    for _ in range(3):
        feed.pipe("in", "a", {"n": 0})
    # The first record passes both, so the second aggregator is given what the first made of it, as in Kafka.
    assert feed.store("one").get("a") == {"first": {"n": 3}}
    assert feed.store("two").get("a") == {"first": {"n": 4}}


def test_a_value_that_was_got_is_ones_own_until_it_is_put() -> None:
    class Changing(Processor[str, Value]):
        def process(self, record: Record[str, Value]) -> None:
            store = self.context.store("s")
            assert isinstance(store, KeyValueStore)
            got = store.get(record.key) or {}
            got["n"] = record.value["n"]
            if record.value["put"]:
                store.put(record.key, got)
            got["n"] = -1

    builder = builder_of_json()
    builder.add_store(StoreSpec(name="s", kind="key_value", key_serde=String(), value_serde=JSON))
    builder.stream("in").process(Changing, stores=["s"])
    feed = Feed(builder)
    feed.pipe("in", "a", {"n": 1, "put": True})
    feed.pipe("in", "a", {"n": 2, "put": False})
    assert feed.store("s").get("a") == {"n": 1}
    for _, value in feed.store("s").all():
        value["n"] = -2
    assert feed.store("s").get("a") == {"n": 1}


# -- what that costs


class Frozen(msgspec.Struct, frozen=True):
    n: int


class Sum(msgspec.Struct):
    n: int = 0


class Counting(Serde[Any]):
    """Counts how often it is asked."""

    def __init__(self, inner: Serde[Any]) -> None:
        self.inner, self.immutable = inner, inner.immutable
        self.calls = 0

    def serialize(self, value: Any) -> bytes:
        self.calls += 1
        return self.inner.serialize(value)

    def deserialize(self, data: bytes) -> Any:
        self.calls += 1
        return self.inner.deserialize(data)


def in_place(key: str, value: Any, total: Sum) -> Sum:
    total.n += value.n
    return total


def anew(key: str, value: Any, total: Frozen) -> Frozen:
    return Frozen(total.n + value.n)


def of_pair(key: str, value: Any, total: Sum) -> Sum:
    return in_place(key, value[0], total)


@pytest.mark.parametrize(
    ("mapper", "initializer", "aggregator", "serde"),
    [
        (lambda value: value, Sum, in_place, Json(Sum)),
        (lambda value: (value, "x"), Sum, of_pair, Json(Sum)),
        (lambda value: value, lambda: Frozen(0), anew, Json(Frozen)),
    ],
    ids=["in place", "in place, of tuples", "anew"],
)
def test_an_aggregate_is_serialized_per_commit_not_per_record(
    mapper: Callable[[Any], Any],
    initializer: Callable[[], Any],
    aggregator: Callable[..., Any],
    serde: Serde[Any],
) -> None:
    """If the records' values are immutable, no part of an aggregate is shared, and it is serialized once per
    commit.
    """
    counting = Counting(serde)
    builder = StreamsBuilder(key_serde=str, value_serde=Frozen)
    grouped = builder.stream("in").map_values(mapper).group_by_key()
    grouped.aggregate(initializer, aggregator, value_serde=counting, store="s")
    feed = Feed(builder)
    for _ in range(100):
        feed.pipe("in", "a", {"n": 1})
    feed.commit()
    assert counting.calls <= 4
    assert feed.store("s").get("a").n == 100


def test_a_borrowed_value_can_be_looked_up_meanwhile() -> None:
    spec = StoreSpec(name="s", kind="key_value", key_serde=String(), value_serde=JSON)
    store: KeyValueStore[str, Value] = KeyValueStore(spec, MemoryBackend())
    store.put("a", {"n": 1}, 1)
    borrowed = store.borrow(b"a")
    assert borrowed is not None
    borrowed[0]["n"] = 2
    assert store.get("a") == {"n": 1}
    store.give_back(b"a", borrowed[0], 2)
    assert store.get("a") == {"n": 2}
    borrowed[0]["n"] = 3
    assert store.get("a") == {"n": 2}, "others have looked at it: it is bytes again"
    assert store.get_timestamp("a") == 2
    store.drain()
    assert store.pending == {b"a": (b'{"n":2}', 2)}


@pytest.mark.parametrize(
    ("type", "immutable"),
    [
        (int, True),
        (Frozen, True),
        (tuple[Frozen, ...], True),
        (Frozen | None, True),
        (Sum, False),
        (tuple[Sum, int], False),
        (dict, False),
        (bytearray, False),
        (Any, False),
        (Task, False),
    ],
)
def test_immutable_types(type: Any, immutable: bool) -> None:
    assert is_immutable(type) is immutable
    assert MessagePack(type).immutable is immutable if type is not Task else True
