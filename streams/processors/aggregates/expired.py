"""The handling of windows past retention in aggregations, as in Kafka Streams.

With one input stream, a record is late before its window is past retention. With several streams that write
one store (cogroup), each has a stream time of its own. So a stream that lags behind the others may add to a
window that the store does not find any more. Then the window's result starts again from nothing.
"""

from __future__ import annotations

from streams.processors.aggregates.aggregate import Addition
from streams.processors.record import Headers
from streams.state import Changed, TimedStore


def hide_expired_old_values(store: TimedStore) -> None:
    """Have a cached store forward windows past retention, at commits, as if they had no earlier value.

    Kafka Streams finds such a window in its cache as well. But when the cache is flushed, the store below
    does not find the window. So its deletion is not forwarded, and its update is forwarded without an old
    value.
    """
    listener, time_of = store.listener, store.time_of
    if listener is None:
        return
    flushed = store.newest

    def changed(changes: list[Changed]) -> None:
        nonlocal flushed
        visible = []
        for stored_key, new, old, timestamp, headers in changes:
            time = time_of(stored_key)
            if time > flushed - store.spec.retention_ms:
                visible.append((stored_key, new, old, timestamp, headers))
            elif new is not None:
                visible.append((stored_key, new, None, timestamp, headers))
            flushed = max(flushed, time)
        listener(visible)

    store.listener = changed


def restart_expired(store: TimedStore, add: Addition) -> Addition:
    """Return an addition that calls ``add`` after marking the window as absent if it is past retention."""
    is_found, set_absent = store.is_found, store.set_absent

    def add_or_restart(
        stored_key: bytes, result_key: object, key: object, value: object, timestamp: int, headers: Headers
    ) -> None:
        if not is_found(stored_key):
            set_absent(stored_key)
        add(stored_key, result_key, key, value, timestamp, headers)

    return add_or_restart
