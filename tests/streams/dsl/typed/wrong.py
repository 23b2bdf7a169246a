# pyright: strict
# mypy: ignore-errors
"""Mistakes of a user's, each in a line that ends with the rule by which a strict type checker finds it."""

from __future__ import annotations

from streams import JoinWindows, KTable, SessionWindows, StreamsBuilder, TimeWindows, ValueTransformer
from tests.streams.dsl.typed.orders import Order, Price, add_pieces, both, larger, total


class Shout(ValueTransformer[str, str, str]):
    def transform(self, key: str, value: str | None) -> str | None:
        return value


def of_numbers(one: int, other: int) -> int:
    return one + other


builder = StreamsBuilder(key_serde=str, value_serde=Order)
orders, others = builder.stream("orders"), builder.stream("others")
prices, by_number = builder.table("prices", value_serde=Price), builder.table("n", key_serde=int)
codes, near = builder.global_table("codes", value_serde=int), JoinWindows.of(10)
grouped, lines = orders.group_by_key(), builder.stream("lines", value_serde=str)

orders.map_values(lambda order: order.colour)  # reportAttributeAccessIssue
orders.map_values(len)  # reportArgumentType
orders.filter(lambda key, order: order.pieces > "3")  # reportOperatorIssue
orders.flat_map_values(lambda order: order.pieces)  # reportArgumentType
orders.merge(lines)  # reportArgumentType
orders.process_values(Shout)  # reportArgumentType
orders.join(prices, both)  # reportArgumentType
orders.join(by_number, both)  # reportArgumentType
orders.join(others, total, windows=near)  # reportArgumentType
orders.left_join(others, both, windows=near)  # reportArgumentType
orders.outer_join(prices, both, windows=near)  # reportArgumentType
orders.join(codes, both, key_selector=lambda key, order: order.item)  # reportArgumentType
prices.join(by_number, lambda price, order: price.cents)  # reportArgumentType
prices.join(orders, lambda price, order: price.cents)  # reportArgumentType
orders.to_table().join(by_number, both, foreign_key=lambda order: order.item)  # reportArgumentType
orders.to_table().left_join(prices, total, foreign_key=lambda order: order.item)  # reportArgumentType
prices.transform_values(Shout)  # reportArgumentType
prices.map_values(lambda price: price.pieces)  # reportAttributeAccessIssue
prices.group_by(lambda key, price: price.cents)  # reportArgumentType
grouped.reduce(of_numbers)  # reportArgumentType
grouped.aggregate(str, add_pieces)  # reportArgumentType
grouped.windowed_by(SessionWindows(10)).aggregate(int, add_pieces)  # reportCallIssue
grouped.windowed_by(TimeWindows(10)).reduce(of_numbers)  # reportArgumentType
grouped.cogroup(add_pieces).cogroup(lines.group_by_key(), add_pieces)  # reportArgumentType
grouped.cogroup(add_pieces).aggregate(str)  # reportArgumentType
counts: KTable[str, str] = grouped.count()  # reportAssignmentType
latest: KTable[str, str] = grouped.reduce(larger)  # reportAssignmentType
