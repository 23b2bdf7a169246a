"""The join of a stream with itself, over the one store that has its records (KIP-862).

A record is joined with earlier records as the left side, then as the right side, and then with itself. So
results are forwarded in the same order as by the join with two stores.
"""

from __future__ import annotations

from typing import Any

from streams.processors.joins.stream_join import JoinSide, window_store
from streams.processors.record import Headers, Process
from streams.processors.wiring import Operator, Wiring


def join_self(side: JoinSide, store_name: str) -> Operator:
    """Return the operator of a stream's join with itself.

    ``side``: the left side, with the join's windows and joiner. ``store_name``: the store of earlier records.
    """
    before, after = side.span_ms
    joined, retention = side.joined(), side.windows.size_ms + side.windows.grace_ms

    def build(wiring: Wiring) -> Process:
        store = window_store(wiring, store_name)
        forward, dropped = wiring.forward, wiring.metrics.dropped
        find, serialize = store.find, store.spec.key_serde.serialize

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            if key is None or value is None:
                dropped()
                return
            raw = serialize(key)
            for time, other in find(raw, max(timestamp - before, 0), max(timestamp + after, 0)):
                forward(key, joined(key, value, other), max(timestamp, time), headers)
            # A record that is too late for a join with another record is not joined with itself either.
            waits = timestamp > max(store.stream_time, timestamp) - retention + 1
            for time, other in find(raw, max(timestamp - after, 0), max(timestamp + before, 0)):
                if waits and time > timestamp:
                    waits = False
                    forward(key, joined(key, value, value), timestamp, headers)
                forward(key, joined(key, other, value), max(timestamp, time), headers)
            if waits:
                forward(key, joined(key, value, value), timestamp, headers)

        return process

    return build
