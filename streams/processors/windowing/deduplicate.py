"""Deduplication: records are dropped if their id was forwarded already (KIP-655).

A store has the ids of forwarded records with their times, within a retention. A record is a duplicate if one
of its key and id was forwarded with a time at most ``within`` before or after its own. So duplicates out of
order are recognized too. A record older than the retention is forwarded, unless it is within reach of a
stored one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import Any

from streams.processors.record import Headers, Process
from streams.processors.wiring import Operator, Wiring
from streams.state.window_key import window_key


def deduplicate(store_name: str, id_of: Callable[[Any, Any], Any] | None, within_ms: int) -> Operator:
    """Return the operator that forwards the first record of each id. ``id_of`` is None if the key is the id.

    Records without a key, or without an id, are forwarded.
    """

    def build(wiring: Wiring) -> Process:
        store, forward = wiring.window_store(store_name), wiring.forward
        times_of, add_time, update = store.key_times.of, store.key_times.add, store.update
        serialize = store.spec.key_serde.serialize

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            if timestamp > store.stream_time:
                store.stream_time = store.newest = timestamp
            id = key if key is None or id_of is None else id_of(key, value)
            if id is None:
                forward(key, value, timestamp, headers)
                return
            raw, oldest = serialize(key if id_of is None else (key, id)), store.oldest
            times = times_of(raw)
            at = bisect_left(times, max(timestamp - within_ms, oldest))
            if at < len(times) and times[at] <= timestamp + within_ms:
                return
            if timestamp >= oldest:
                add_time(raw, timestamp)
                update(window_key(raw, timestamp), timestamp, timestamp)
            forward(key, value, timestamp, headers)

        return process

    return build
