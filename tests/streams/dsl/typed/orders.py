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
    CogroupedKStream,
    ErrorContext,
    ErrorResponse,
    FixedKeyProcessor,
    FixedKeyRecord,
    GlobalKTable,
    JoinWindows,
    KGroupedStream,
    KGroupedTable,
    KStream,
    KTable,
    Processor,
    Record,
    RecordContext,
    SessionWindowedKStream,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    Suppressed,
    TimeWindowedKStream,
    TimeWindows,
    Topology,
    ValueTransformer,
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


def one_or_both(order: Order, other: Order | None) -> str:
    return order.item if other is None else order.item + other.item


def any_of_both(order: Order | None, other: Order | None) -> int:
    return sum(each.pieces for each in (order, other) if each is not None)


def larger(order: Order, other: Order) -> Order:
    return max(order, other, key=lambda each: each.pieces)


def add_pieces(key: str, order: Order, so_far: int) -> int:
    return so_far + order.pieces


def add_cents(key: str, price: Price, so_far: int) -> int:
    return so_far + price.cents


def added(key: str, one: int, other: int) -> int:
    return one + other


def shorter(one: str, other: str) -> str:
    return min(one, other, key=len)


def add_name(cents: int, name: str, so_far: str) -> str:
    return so_far + name


def forget(cents: int, name: str, so_far: str) -> str | None:
    return None


class Cents(ValueTransformer[str, Price, int]):
    def transform(self, key: str, value: Price | None) -> int | None:
        return None if value is None else value.cents


def again_by_size(prices: KTable[str, Price]) -> KTable[int, list[str]]:
    return prices.group_by(lambda key, price: (price.cents, key), value_serde=str).top_n(2)


def joins(
    builder: StreamsBuilder[str, Order], orders: KStream[str, Order], prices: KTable[str, Price]
) -> None:
    others, near = builder.stream("others"), JoinWindows.of(1000)
    assert_type(orders.join(others, both, windows=near), KStream[str, str])
    assert_type(orders.left_join(others, one_or_both, windows=near), KStream[str, str])
    assert_type(orders.left_join(others, keyed, windows=near), KStream[str, int])
    assert_type(orders.outer_join(others, any_of_both, windows=near), KStream[str, int])
    assert_type(
        orders.left_join(prices, lambda order, price: (order.item, price)),
        KStream[str, tuple[str, Price | None]],
    )
    codes = builder.global_table("codes", value_serde=int)
    assert_type(codes, GlobalKTable[str, int])
    assert_type(builder.global_table("by-code", key_serde=int), GlobalKTable[int, Order])
    by_code = orders.join(
        codes, lambda order, code: order.pieces + code, key_selector=lambda key, order: order.country
    )
    assert_type(by_code, KStream[str, int])
    coded = orders.left_join(codes, lambda order, code: code is not None, key_selector=lambda key, order: key)
    assert_type(coded, KStream[str, bool])
    stock = builder.table("stock", value_serde=int)
    assert_type(prices.join(stock, lambda price, left: price.cents * left), KTable[str, int])
    assert_type(
        prices.left_join(stock, lambda price, left: (price, left)), KTable[str, tuple[Price, int | None]]
    )
    worth = prices.outer_join(stock, lambda price, left: 0 if price is None else price.cents * (left or 0))
    assert_type(worth, KTable[str, int])
    latest, by_number = orders.to_table(), builder.table("table-by-number", key_serde=int)
    assert_type(by_number, KTable[int, Order])
    assert_type(latest.join(prices, total, foreign_key=lambda order: order.item), KTable[str, int])
    assert_type(latest.join(by_number, both, foreign_key=lambda key, order: order.pieces), KTable[str, str])
    foreign = latest.left_join(by_number, one_or_both, foreign_key=lambda order: order.pieces or None)
    assert_type(foreign, KTable[str, str])


def groups(grouped: KGroupedStream[str, Order], prices: KTable[str, Price]) -> None:
    assert_type(grouped.reduce(larger), KTable[str, Order])
    sliding = grouped.windowed_by(SlidingWindows(10, grace=5))
    assert_type(sliding, TimeWindowedKStream[str, Order])
    assert_type(sliding.reduce(larger), KTable[Windowed[str], Order])
    sessions = grouped.windowed_by(SessionWindows(10, grace=5))
    assert_type(sessions, SessionWindowedKStream[str, Order])
    assert_type(sessions.aggregate(int, add_pieces, added), KTable[Windowed[str], int])
    final = sessions.count().suppress(Suppressed.until_window_closes())
    assert_type(final, KTable[Windowed[str], int])
    priced = prices.to_stream().group_by_key()
    together = grouped.cogroup(add_pieces).cogroup(priced, add_cents)
    assert_type(together, CogroupedKStream[str, int])
    assert_type(together.aggregate(int), KTable[str, int])
    assert_type(together.windowed_by(TimeWindows(10)).aggregate(int), KTable[Windowed[str], int])
    merged = together.windowed_by(SessionWindows(10)).aggregate(int, added)
    assert_type(merged, KTable[Windowed[str], int])
    cents = prices.transform_values(Cents)
    assert_type(cents, KTable[str, int])
    by_cents = cents.group_by(lambda key, cents: (cents, key), key_serde=int, value_serde=str)
    assert_type(by_cents, KGroupedTable[int, str])
    assert_type(by_cents.reduce(shorter, shorter), KTable[int, str])
    names = by_cents.aggregate(str, add_name, forget)
    assert_type(names, KTable[int, str])


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
    assert_type(builder.stream("by-number", key_serde=int), KStream[int, Order])
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
    joins(builder, orders, prices)
    groups(grouped, prices)
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
    numbers = StoreSpec(name="seen", kind="key_value", key_serde=str, value_serde=Order)
    orders.process_values(Numbered, stores=[numbers]).to("numbered", value_serde=int)
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
