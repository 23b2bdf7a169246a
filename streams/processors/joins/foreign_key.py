"""The join of a table with another one by a key in its values: KIP-213.

Each left row subscribes to its foreign key, where the foreign table is; the subscription is kept there. The
foreign value comes back in a response, at once and whenever it changes. The left row is looked up for it: if
it changed meanwhile, which its hash tells, another response is under way, and this one is dropped.

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
from streams.serdes.foreign_key import Instruction, Response, Subscription, behind, combined_key
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
    """Subscribe left rows to the foreign key of their value, and unsubscribe them from the one before."""
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
            told = instructions(before, now, is_same=is_same)
            if not told:
                dropped()
                return
            hash = None if new is None else murmur3_128(serialize(new))
            for foreign_key, instruction in told:
                forward(foreign_key, Subscription(hash, instruction, key, partition), timestamp, headers)

        return process

    return build


_Told = list[tuple[Any, Instruction]]
"""Foreign keys and what is to be done there."""


def _inner_instructions(before: Any, now: Any, *, is_same: bool) -> _Told:
    if before is None:
        return [] if now is None else [(now, _TELL_IF_THERE)]
    if now is None:
        return [(before, _FORGET_AND_TELL)]
    if is_same:
        return [(now, _TELL_IF_THERE)]
    # What was joined before has to go, even if there is nothing under the new foreign key.
    return [(before, _FORGET), (now, _TELL)]


def _left_instructions(before: Any, now: Any, *, is_same: bool) -> _Told:
    told: _Told = [] if before is None or is_same else [(before, _FORGET)]
    return [*told, (now, _TELL)]


def receive_subscriptions(
    store_name: str, serialize_foreign: Callable[[Any], bytes], serialize_key: Callable[[Any], bytes]
) -> Operator:
    """Keep subscriptions, or forget them, and pass them on."""

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
    """Answer a subscription with the foreign value, as its instruction says."""

    def build(wiring: Wiring) -> Process:
        forward, get = wiring.forward, foreign.bind(wiring)

        def process(key: Any, value: Subscription, timestamp: int, headers: Headers) -> None:
            hash, instruction, row_key, partition = value
            if instruction == _FORGET:
                return
            found = None if key is None else get(key)
            foreign_value = None
            if found is not None:
                foreign_value, time = found
                timestamp = max(timestamp, time)
            elif instruction == _TELL_IF_THERE:
                return
            if instruction == _FORGET_AND_TELL:
                foreign_value = None
            forward(row_key, Response(hash, foreign_value, partition), timestamp, headers)

        return process

    return build


def answer_changed(store_name: str, serialize_foreign: Callable[[Any], bytes]) -> Operator:
    """Tell a foreign row's update to all that subscribed to it."""

    def build(wiring: Wiring) -> Process:
        forward, scan = wiring.forward, wiring.key_value_store(store_name).scan

        def process(key: Any, value: Change, timestamp: int, headers: Headers) -> None:
            prefix, new = combined_key(serialize_foreign(key), b""), value[0]
            for _, (hash, _, row_key, partition), _ in scan(prefix, behind(prefix)):
                forward(row_key, Response(hash, new, partition), timestamp, headers)

        return process

    return build


def resolve(left_table: TableView, value_serde: Serde[Any], joiner: Joiner, *, left: bool) -> Operator:
    """Join a response with the left row, if that is still the one that subscribed; None if there is no
    result.
    """

    def build(wiring: Wiring) -> Process:
        forward, dropped = wiring.forward, wiring.metrics.dropped
        get, serialize = left_table.bind(wiring), value_serde.serialize

        def process(key: Any, value: Response, timestamp: int, headers: Headers) -> None:
            found = get(key)
            row = None if found is None else found[0]
            if value.hash != (None if row is None else murmur3_128(serialize(row))):
                dropped()
                return
            gone = value.value is None and (row is None or not left)
            forward(key, None if gone else joiner(key, row, value.value), timestamp, headers)

        return process

    return build


def placed_by_response(topic: str, key: Any, value: Response, partitions: int) -> int | None:
    """A response goes to the partition that the subscription came from."""
    return value.partition
