"""What aggregations do about windows past retention, as Kafka Streams' stores have it.

A record of an aggregation's own is late before its window is past retention. Not so where several streams
write one store (cogroup): each has a time of its own, and one that is behind the others may still add to a
window that the store does not find any more. Then it begins anew.
"""

from __future__ import annotations

from streams.processors.aggregates.aggregate import Addition
from streams.processors.record import Headers
from streams.state import Changed, TimedStore


def tell_as_stored(store: TimedStore) -> None:
    """Have a cached store tell at commits of windows past retention as if it had had nothing of them before.

    Kafka Streams, too, finds such a window in its cache; but when the cache is flushed, the store below does
    not find it any more. So nobody hears that it is gone, and of one that is set there is no old value.
    """
    listener, time_of = store.listener, store.time_of
    if listener is None:
        return
    flushed = store.newest

    def changed(changes: list[Changed]) -> None:
        nonlocal flushed
        told = []
        for stored_key, new, old, timestamp, headers in changes:
            time = time_of(stored_key)
            if time > flushed - store.spec.retention_ms:
                told.append((stored_key, new, old, timestamp, headers))
            elif new is not None:
                told.append((stored_key, new, None, timestamp, headers))
            flushed = max(flushed, time)
        listener(told)

    store.listener = changed


def begin_anew_past_retention(store: TimedStore, add: Addition) -> Addition:
    """Return what adds as ``add`` does, and finds nothing to add to in a window past retention."""
    is_found, set_absent = store.is_found, store.set_absent

    def add_to_found(
        stored_key: bytes, result_key: object, key: object, value: object, timestamp: int, headers: Headers
    ) -> None:
        if not is_found(stored_key):
            set_absent(stored_key)
        add(stored_key, result_key, key, value, timestamp, headers)

    return add_to_found
