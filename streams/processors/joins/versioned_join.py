"""The join of a stream with a versioned table: each record with the table's value at the record's time.

With a grace period (KIP-923), records wait in a store until stream time is past their time by the period. So
they are joined with updates of the table that arrive meanwhile. A record later than that is joined at once.
"""

from __future__ import annotations

from typing import Any

from streams.processors.joins.joiner import Joiner
from streams.processors.record import Headers, Process
from streams.processors.tables.table import AsOfView
from streams.processors.wiring import Operator, Wiring
from streams.serdes import Serde
from streams.serdes.buffered import Buffered
from streams.state import JoinBufferStore


def join_as_of(view: AsOfView, joiner: Joiner, *, left: bool) -> Operator:
    """Return the operator that joins each record with the table's value at the record's time.

    The result has the record's timestamp. Null values are dropped. An inner join drops null keys and ignores
    keys that the table did not have at that time; with ``left`` these are joined with None.
    """

    def build(wiring: Wiring) -> Process:
        join, dropped = _join(wiring, view, joiner, left=left), wiring.metrics.dropped

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            if value is None or (key is None and not left):
                dropped()
            else:
                join(key, value, timestamp, headers)

        return process

    return build


def join_buffered(
    view: AsOfView,
    joiner: Joiner,
    store_name: str,
    grace_ms: int,
    key_serde: Serde[Any],
    value_serde: Serde[Any],
    *,
    left: bool,
) -> Operator:
    """Return an operator like `join_as_of` whose records wait until stream time is ``grace_ms`` past theirs.

    Waiting records are joined by their times and keys. A record that is late already, or has no key, does not
    wait.
    """

    def build(wiring: Wiring) -> Process:
        join, dropped, task = _join(wiring, view, joiner, left=left), wiring.metrics.dropped, wiring.task
        store = wiring.store(store_name)
        assert isinstance(store, JoinBufferStore), f"{store_name} is not a join's buffer"

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            if value is None or (key is None and not left):
                dropped()
                return
            if key is None or timestamp < store.stream_time - grace_ms:
                join(key, value, timestamp, headers)
                return
            place = task.offset, task.topic, task.partition
            data = value_serde.serialize(value)
            store.add(key_serde.serialize(key), Buffered(0, None, None, data, timestamp, *place, headers))
            for raw, record in store.take(store.stream_time - grace_ms):
                its_value = value_serde.deserialize(record.new or b"")
                join(key_serde.deserialize(raw), its_value, record.timestamp, record.headers)

        return process

    return build


def _join(wiring: Wiring, view: AsOfView, joiner: Joiner, *, left: bool) -> Process:
    """Return a function that joins a record, which must have a value, and a key unless ``left``."""
    forward, get = wiring.forward, view.bind_as_of(wiring)

    def join(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        entry = None if key is None else get(key, timestamp)
        if entry is not None:
            forward(key, joiner(key, value, entry[0]), timestamp, headers)
        elif left:
            forward(key, joiner(key, value, None), timestamp, headers)

    return join
