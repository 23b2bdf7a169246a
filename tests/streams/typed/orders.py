# pyright: strict
"""A user's project: strict type checkers know every key and value in it (test_typing.py)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, assert_type
from uuid import UUID

import msgspec

from streams import (
    ErrorContext,
    ErrorResponse,
    FixedKeyProcessor,
    FixedKeyRecord,
    KGroupedStream,
    KStream,
    KTable,
    Processor,
    Record,
    RecordContext,
    StreamsBuilder,
    TimeWindows,
    Topology,
    Windowed,
    log_and_continue,
)
from streams.serdes import Avro, Integer, ListOf, MessagePack, String
from streams.state import StoreSpec
from streams.testing import TopologyTestDriver
from streams.topology import Handlers


class Order(msgspec.Struct, frozen=True):
    item: str
    pieces: int
    country: str = ""


@dataclass(frozen=True)
class Price:
    cents: int


def total(order: Order, price: Price) -> int:
    return order.pieces * price.cents


def both(order: Order, other: Order) -> str:
    return order.item + other.item


def keyed(key: str, order: Order, other: Order | None) -> int:
    return 0 if other is None else other.pieces


def again_by_size(prices: KTable[str, Price]) -> KTable[int, list[str]]:
    return prices.group_by(lambda key, price: (price.cents, key), value_serde=str).top_n(2)


def by_country(key: str, order: Order, context: RecordContext) -> str:
    return f"orders-{order.country or context.topic}"


async def priced(order: Order) -> Price:
    return Price(order.pieces)


async def counted(key: str, order: Order, session: int) -> int:
    return order.pieces + session


async def named(order: Order) -> list[str]:
    return [order.item]


async def moved(key: str, order: Order) -> tuple[int, Order]:
    return order.pieces, order


@asynccontextmanager
async def session() -> AsyncGenerator[int, None]:
    yield 1


def pieces_of(orders: list[Order]) -> list[int]:
    return [order.pieces for order in orders]


class Numbered(FixedKeyProcessor[str, Order]):
    def process(self, record: FixedKeyRecord[str, Order]) -> None:
        assert_type(record.value.item, str)
        self.context.forward(record.with_value(record.value.pieces))


class Large(Processor[str, Order]):
    def process(self, record: Record[str, Order]) -> None:
        if record.value.pieces > 100:
            self.context.forward(record.with_key(record.value.item))


def words(line: str) -> Iterable[str]:
    return line.split()


def set_aside(error: Exception, context: ErrorContext) -> ErrorResponse:
    return ErrorResponse(answer="continue", dead_letters=(context.dead_letter("dead"),))


def topology() -> Topology:
    builder = StreamsBuilder(key_serde=str, value_serde=Order)
    assert_type(builder, StreamsBuilder[str, Order])
    orders = builder.stream("orders")
    assert_type(orders, KStream[str, Order])
    assert_type(builder.stream("lines", value_serde=str).flat_map_values(words), KStream[str, str])
    assert_type(
        builder.stream("ids", key_serde=UUID, value_serde=dict[str, int]), KStream[UUID, dict[str, int]]
    )
    assert_type(builder.stream("numbers", value_serde=Integer()), KStream[str, int])
    prices = builder.table("prices", value_serde=Price)
    assert_type(prices, KTable[str, Price])
    assert_type(orders.join(prices, total), KStream[str, int])
    assert_type(orders.map_values(lambda order: order.pieces), KStream[str, int])
    assert_type(orders.map_values(lambda key, order: key + order.item), KStream[str, str])
    assert_type(prices.map_values(lambda price: price.cents), KTable[str, int])
    assert_type(orders.filter(lambda key, order: order.pieces > 1), KStream[str, Order])
    assert_type(orders.select_key(lambda key, order: order.pieces), KStream[int, Order])
    assert_type(orders.map(lambda key, order: (order.item, order.pieces)), KStream[str, int])
    assert_type(orders.map_values_async(priced, retries=2), KStream[str, Price])
    assert_type(orders.map_values_async(counted, context=session, timeout=50), KStream[str, int])
    assert_type(orders.flat_map_values_async(named), KStream[str, str])
    assert_type(orders.map_async(moved, ordered="partition"), KStream[int, Order])
    assert_type(orders.map_values_batch(pieces_of, max_records=10), KStream[str, int])
    grouped = orders.group_by(lambda key, order: order.country)
    assert_type(grouped, KGroupedStream[str, Order])
    assert_type(grouped.count(), KTable[str, int])
    assert_type(grouped.aggregate(int, lambda key, order, so_far: so_far + order.pieces), KTable[str, int])
    assert_type(grouped.top_n(3, by=lambda order: order.pieces), KTable[str, list[Order]])
    assert_type(again_by_size(prices), KTable[int, list[str]])
    first = orders.deduplicate(lambda order: order.item, within=1000)
    assert_type(first.deduplicate(lambda key, order: (key, order.item), within=10), KStream[str, Order])
    assert_type(orders.join_asof(first, both, tolerance=5, direction="nearest"), KStream[str, str])
    assert_type(orders.left_join_asof(first, keyed, tolerance=5), KStream[str, int])
    assert_type(orders.interval_join(first, both, before=5, after=5), KStream[str, str])
    raw = builder.stream("raw", value_serde=dict[str, Any])
    assert_type(raw.fill({"pieces": 1}).drop("country"), KStream[str, dict[str, Any]])
    idle = grouped.windowed_by(TimeWindows(10), emit_strategy="on_window_close", idle_timeout=5)
    assert_type(idle.bottom_n(3), KTable[Windowed[str], list[Order]])
    closed = idle.count().to_stream()
    assert_type(closed.fill_windows(0, limit=5), KStream[Windowed[str], int])
    windowed = grouped.windowed_by(TimeWindows(1000)).count()
    assert_type(windowed, KTable[Windowed[str], int])
    assert_type(windowed.to_stream(lambda key, count: key.key), KStream[str, int])
    assert_type(prices.to_stream(), KStream[str, Price])
    again = prices.group_by(lambda key, price: (price.cents, key)).count()
    assert_type(again, KTable[int, int])
    split = orders.split(name="by-").branch(lambda key, order: order.pieces > 100, name="large")
    branches = split.default_branch(name="rest")
    assert_type(branches, dict[str, KStream[str, Order]])
    branches["by-large"].to(by_country)
    branches["by-rest"].to("orders-small", partitioner=lambda topic, key, order, count: order.pieces % count)
    seen = StoreSpec(name="seen", kind="key_value", key_serde=str, value_serde=Order)
    orders.process_values(Numbered, stores=[seen]).to("numbered", value_serde=int)
    orders.process(Large).to("large", key_serde=str, value_serde=Order)
    orders.repartition(name="again", partitions=3).print(mapper=lambda key, order: f"{key}: {order.item}")
    packed: KStream[str, Order] = builder.stream("packed", value_serde=MessagePack(Order))
    packed.merge(orders).foreach(lambda key, order: print(order.item))
    builder.stream("lists", value_serde=ListOf(String())).map_values(len).to("sizes", value_serde=int)
    builder.stream("avro", value_serde=Avro('"string"')).to("strings", value_serde=str)
    return builder.build()


def without_defaults() -> Topology:
    builder = StreamsBuilder()
    stream = builder.stream("in", key_serde=str, value_serde=bytes)
    assert_type(stream, KStream[str, bytes])
    assert_type(builder, StreamsBuilder[Any, Any])
    stream.to("out", value_serde=bytes)
    return builder.build()


def by_hand() -> Topology:
    topology = Topology(key_serde=str, value_serde=Order)
    topology.add_source("in", "orders").add_processor("large", Large, "in")
    return topology.add_sink("out", by_country, "large")


def run_in_memory() -> list[tuple[str, Order]]:
    handlers = Handlers(processing=set_aside, deserialization=log_and_continue)
    with TopologyTestDriver(by_hand(), handlers=handlers) as driver:
        driver.input_topic("orders").pipe_input("k", Order("nut", 200, "de"))
        return driver.output_topic("orders-de", key_serde=str, value_serde=Order).read_key_values()
