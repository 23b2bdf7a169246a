"""The join of a table with another one by a key in its values: KIP-213.

Each left row sends a subscription to its foreign key's partition of the foreign table, where it is stored.
The foreign value is sent back in a response, at once and whenever it changes. A response has the hash of the
left row that subscribed. If the left row has another hash by then, another response follows, and this one is
dropped.

    left row -> send -> (topic) -> receive -> answer          -> (topic) -> resolve -> result
                foreign row     ->            answer_changed  ->
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streams.processors.joins.joiner import Joiner
from streams.processors.record import Headers, Process
from streams.processors.tables.change import Change
from streams.processors.tables.table import TableView
from streams.processors.wiring import Operator, Wiring
from streams.serdes import Serde
from streams.serdes.foreign_key import Instruction, Response, Subscription, combined_key, end_of_prefix
from streams.serdes.murmur3 import murmur3_128

_FORGET = Instruction.DELETE_KEY_NO_PROPAGATE
_FORGET_AND_TELL = Instruction.DELETE_KEY_AND_PROPAGATE
_TELL = Instruction.PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE
_TELL_IF_THERE = Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE


def send_subscriptions(
    extract: Callable[[Any, Any], Any],
    serialize_foreign: Callable[[Any], bytes],
    value_serde: Serde[Any],
    *,
    left: bool,
) -> Operator:
    """Return the operator that subscribes left rows to their foreign key, and unsubscribes the old one."""
    instructions = _left_instructions if left else _inner_instructions

    def build(wiring: Wiring) -> Process:
        forward, dropped = wiring.forward, wiring.metrics.dropped
        partition, serialize = int(wiring.task.task_id.partition("_")[2]), value_serde.serialize

        def process(key: Any, value: Change, timestamp: int, headers: Headers) -> None:
            new, old = value
            if new is None and old is None:
                return
            before = None if old is None else extract(key, old)
            now = None if new is None else extract(key, new)
            both = before is not None and now is not None
            is_same = both and serialize_foreign(before) == serialize_foreign(now)
            subscriptions = instructions(before, now, is_same=is_same)
            if not subscriptions:
                dropped()
                return
            hash = None if new is None else murmur3_128(serialize(new))
            for foreign_key, instruction in subscriptions:
                forward(foreign_key, Subscription(hash, instruction, key, partition), timestamp, headers)

        return process

    return build


_Instructions = list[tuple[Any, Instruction]]
"""Foreign keys, each with the instruction to send there."""


def _inner_instructions(before: Any, now: Any, *, is_same: bool) -> _Instructions:
    if before is None:
        return [] if now is None else [(now, _TELL_IF_THERE)]
    if now is None:
        return [(before, _FORGET_AND_TELL)]
    if is_same:
        return [(now, _TELL_IF_THERE)]
    # The old result must be deleted, even if the foreign table does not have the new key.
    return [(before, _FORGET), (now, _TELL)]


def _left_instructions(before: Any, now: Any, *, is_same: bool) -> _Instructions:
    unsubscribe: _Instructions = [] if before is None or is_same else [(before, _FORGET)]
    return [*unsubscribe, (now, _TELL)]


def receive_subscriptions(
    store_name: str, serialize_foreign: Callable[[Any], bytes], serialize_key: Callable[[Any], bytes]
) -> Operator:
    """Return the operator that stores or deletes subscriptions, and forwards them."""

    def build(wiring: Wiring) -> Process:
        forward, dropped = wiring.forward, wiring.metrics.dropped
        update = wiring.key_value_store(store_name).update

        def process(key: Any, value: Subscription, timestamp: int, headers: Headers) -> None:
            if key is not None:
                stored_key = combined_key(serialize_foreign(key), serialize_key(value.key))
                is_kept = value.instruction in (_TELL, _TELL_IF_THERE)
                update(stored_key, value if is_kept else None, timestamp)
            elif value.instruction != _TELL:
                dropped()
                return
            forward(key, value, timestamp, headers)

        return process

    return build


def answer(foreign: TableView) -> Operator:
    """Return the operator that responds to a subscription with the foreign value, by its instruction."""

    def build(wiring: Wiring) -> Process:
        forward, get = wiring.forward, foreign.bind(wiring)

        def process(key: Any, value: Subscription, timestamp: int, headers: Headers) -> None:
            hash, instruction, row_key, partition = value
            if instruction == _FORGET:
                return
            entry = None if key is None else get(key)
            foreign_value = None
            if entry is not None:
                foreign_value, time = entry
                timestamp = max(timestamp, time)
            elif instruction == _TELL_IF_THERE:
                return
            if instruction == _FORGET_AND_TELL:
                foreign_value = None
            forward(row_key, Response(hash, foreign_value, partition), timestamp, headers)

        return process

    return build


def answer_changed(store_name: str, serialize_foreign: Callable[[Any], bytes]) -> Operator:
    """Return the operator that sends a foreign row's update to all its subscribers."""

    def build(wiring: Wiring) -> Process:
        forward, scan = wiring.forward, wiring.key_value_store(store_name).scan

        def process(key: Any, value: Change, timestamp: int, headers: Headers) -> None:
            prefix, new = combined_key(serialize_foreign(key), b""), value[0]
            for _, (hash, _, row_key, partition), _ in scan(prefix, end_of_prefix(prefix)):
                forward(row_key, Response(hash, new, partition), timestamp, headers)

        return process

    return build


def resolve(left_table: TableView, value_serde: Serde[Any], joiner: Joiner, *, left: bool) -> Operator:
    """Return the operator that joins a response with the left row, if the row has not changed meanwhile.

    The result is None if the rows have no join.
    """

    def build(wiring: Wiring) -> Process:
        forward, dropped = wiring.forward, wiring.metrics.dropped
        get, serialize = left_table.bind(wiring), value_serde.serialize

        def process(key: Any, value: Response, timestamp: int, headers: Headers) -> None:
            entry = get(key)
            row = None if entry is None else entry[0]
            if value.hash != (None if row is None else murmur3_128(serialize(row))):
                dropped()
                return
            has_none = value.value is None and (row is None or not left)
            forward(key, None if has_none else joiner(key, row, value.value), timestamp, headers)

        return process

    return build


def placed_by_response(topic: str, key: Any, value: Response, partitions: int) -> int | None:
    """Return the partition of a response: the one from which the subscription was sent."""
    return value.partition
