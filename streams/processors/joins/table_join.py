"""The join of two tables by their key: each side's updates are joined with the other side's current value.

A side may need a value of its own, and one of the other side, for a result:

    join        both sides need both values
    left join   both sides need the left value
    outer join  one of both values is enough

A result has the higher timestamp of both values. A key that has no result any more is deleted. An update of a
key that had and has no value on either side is not forwarded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from streams.processors.joins.joiner import Joiner
from streams.processors.record import Headers, Process
from streams.processors.tables.change import Change
from streams.processors.tables.table import Getter, OldValues, TableView, keeper
from streams.processors.wiring import Operator, Wiring
from streams.state import Entry


def join_updates(
    other: TableView, joiner: Joiner, old_values: OldValues, *, needs_own: bool, needs_other: bool
) -> Operator:
    """Return the operator that joins one side's updates with the other table.

    ``joiner`` takes key, this side's value and the other's.
    """

    def build(wiring: Wiring) -> Process:
        forward, get, tells_old = wiring.forward, other.bind(wiring), old_values.are_told

        def process(key: Any, value: Change, timestamp: int, headers: Headers) -> None:
            entry = get(key)
            new, old = value
            if entry is None:
                if needs_other or (new is None and old is None):
                    return
                others = None
            else:
                others, time = entry
                if time > timestamp:
                    timestamp = time
            required = needs_own or entry is None  # a value of this side
            joined = None if new is None and required else joiner(key, new, others)
            before = None if not tells_old or (old is None and required) else joiner(key, old, others)
            forward(key, (joined, before), timestamp, headers)

        return process

    return build


def keep_joined(store_name: str, old_values: OldValues) -> Operator:
    """Return the operator that puts both sides' results in the joined table's store, and forwards them."""

    def build(wiring: Wiring) -> Process:
        keep = keeper(wiring, store_name, old_values)

        def process(key: Any, value: Change, timestamp: int, headers: Headers) -> None:
            keep(key, value[0], timestamp, headers)

        return process

    return build


@dataclass(frozen=True, slots=True)
class JoinedView:
    """The join of two tables, computed for each lookup."""

    left: TableView
    right: TableView
    joiner: Joiner
    needs_left: bool
    needs_right: bool

    @property
    def stores(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.left.stores, *self.right.stores)))

    def bind(self, wiring: Wiring) -> Getter:
        get_left, get_right, joiner = self.left.bind(wiring), self.right.bind(wiring), self.joiner
        needs_left, needs_right = self.needs_left, self.needs_right

        def get(key: Any) -> Entry | None:
            left = get_left(key)
            if left is None and needs_left:
                return None
            right = get_right(key)
            if right is None and (needs_right or left is None):
                return None
            left_value, left_time = left or (None, -1)
            right_value, right_time = right or (None, -1)
            value = joiner(key, left_value, right_value)
            return None if value is None else (value, max(left_time, right_time))

        return get
