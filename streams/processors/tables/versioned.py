"""Tables with versioned stores: updates that come out of order, and who leaves them out (KIP-914).

An update that is not its key's latest version changes nothing for those who know a table's latest values
only: joins of tables and aggregations of a versioned table drop it. It goes on to streams, and to tables that
are made of this one value by value, as an `OutOfOrder` change. `processors.table` and others call these where
the table above, or a store of their own, is versioned; nothing is asked per record elsewhere.
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
    """A change made of another one, out of order if that is."""
    return OutOfOrder((new, old)) if type(change) is OutOfOrder else (new, old)


def latest_only(operator: Operator, *, counted: bool = True) -> Operator:
    """The operator without updates that come out of order; they count as dropped unless told otherwise."""

    def build(wiring: Wiring) -> Process:
        process, dropped = operator(wiring), wiring.metrics.dropped

        def process_latest(key: Any, value: Change, timestamp: int, headers: Headers) -> None:
            if type(value) is not OutOfOrder:
                process(key, value, timestamp, headers)
            elif counted:
                dropped()

        return process_latest

    return build


class Told(Protocol):
    """True if somebody below wants the values before."""

    are_told: bool


def version_keeper(wiring: Wiring, store: VersionedStore[Any, Any], old_values: Told) -> Process:
    """What puts a version in a table's store and forwards the change; what is too old for that is dropped."""
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
    """What puts a change's new value under a key's bytes, and forwards the change with the key."""
    put, forward, dropped = store.put_version, wiring.forward, wiring.metrics.dropped

    def keep(raw: bytes, key: Any, change: Change, timestamp: int, headers: Headers) -> None:
        valid_to = put(raw, change[0], timestamp)
        if valid_to == PUT_RETURN_CODE_NOT_PUT:
            dropped()
            return
        is_latest = valid_to == PUT_RETURN_CODE_VALID_TO_UNDEFINED
        forward(key, change if is_latest else OutOfOrder(change), timestamp, headers)

    return keep
