"""Tables with versioned stores: updates that are out of order, and the operators that drop them (KIP-914).

An update is out of order if it is not its key's latest version, so that the table's latest values stay as
they are. Joins of tables and aggregations of a versioned table drop such an update. Streams, and tables
derived value by value, receive it as an `OutOfOrder` change.

Operators use these functions only if the parent table, or their own store, is versioned. So updates of other
tables are not tested.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from streams.processors.record import Headers, Process
from streams.processors.tables.change import Change
from streams.processors.wiring import Operator, Wiring
from streams.state import PUT_RETURN_CODE_NOT_PUT, PUT_RETURN_CODE_VALID_TO_UNDEFINED, VersionedStore


class OutOfOrder(tuple[Any, Any]):
    """A `Change` whose new value is not the key's latest version."""

    __slots__ = ()


def as_late_as(change: Change, new: Any, old: Any) -> Change:
    """Return a change with other values, out of order if ``change`` is."""
    return OutOfOrder((new, old)) if type(change) is OutOfOrder else (new, old)


def latest_only(operator: Operator, *, counted: bool = True) -> Operator:
    """Return an operator that ignores updates out of order, and counts them as dropped if ``counted``."""

    def build(wiring: Wiring) -> Process:
        process, dropped = operator(wiring), wiring.metrics.dropped

        def process_latest(key: Any, value: Change, timestamp: int, headers: Headers) -> None:
            if type(value) is not OutOfOrder:
                process(key, value, timestamp, headers)
            elif counted:
                dropped()

        return process_latest

    return build


class PreviousValues(Protocol):
    """True if updates come with previous values."""

    are_told: bool


def version_keeper(wiring: Wiring, store: VersionedStore[Any, Any], old_values: PreviousValues) -> Process:
    """Return a function that puts a version in a table's store and forwards the change.

    A version older than the store's history is dropped.
    """
    encode, latest, tells_old = store.encode_key, store.latest, old_values.are_told
    keep_result = result_keeper(wiring, store)

    def keep(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        raw = encode(key)
        before = latest(raw) if tells_old else None
        keep_result(raw, key, (value, None if before is None else before[0]), timestamp, headers)

    return keep


def result_keeper(
    wiring: Wiring, store: VersionedStore[Any, Any]
) -> Callable[[bytes, Any, Change, int, Headers], None]:
    """Return a function that puts a change's new value under a key's bytes, and forwards the change."""
    put, forward, dropped = store.put_version, wiring.forward, wiring.metrics.dropped

    def keep(raw: bytes, key: Any, change: Change, timestamp: int, headers: Headers) -> None:
        valid_to = put(raw, change[0], timestamp)
        if valid_to == PUT_RETURN_CODE_NOT_PUT:
            dropped()
            return
        is_latest = valid_to == PUT_RETURN_CODE_VALID_TO_UNDEFINED
        forward(key, change if is_latest else OutOfOrder(change), timestamp, headers)

    return keep
