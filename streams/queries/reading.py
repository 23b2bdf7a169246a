"""The answer to a query from one store, read in the store's own thread. No waiting, no threads here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from streams.errors import InvalidStateStore
from streams.queries.query import (
    KeyQuery,
    MultiVersionedKeyQuery,
    Page,
    Query,
    RangeQuery,
    Row,
    ValueAndTimestamp,
    VersionedKeyQuery,
    WindowKeyQuery,
    WindowRangeQuery,
)
from streams.serdes.windowed import FOREVER
from streams.state import (
    CachedStore,
    KeyValueStore,
    SessionStore,
    TimedStore,
    VersionedRecord,
    VersionedStore,
    WindowStore,
)
from streams.state.session_key import session_bounds
from streams.state.window_key import window_key, window_start

LOOKED_AT_MAX = 10_000
"""The most rows to examine for a page, because processing waits meanwhile."""

PAGE_BYTES_MAX = 4 * 1024 * 1024
"""The approximate bound of a page's size, without its last row."""

_Raw = tuple[bytes, Any, int, int]


class UnknownQuery(InvalidStateStore):
    """A store of this kind does not answer such a query."""


def read(store: CachedStore, query: Query) -> Any:
    """Return the answer, of the type that the query's class names. Raises UnknownQuery if it does not fit."""
    match query, store:
        case KeyQuery(), KeyValueStore():
            entry = store.peek(_key_bytes(store, query.key))
            return None if entry is None else ValueAndTimestamp(*entry)
        case RangeQuery(), KeyValueStore():
            return _range(store, query)
        case ((WindowKeyQuery() | WindowRangeQuery()), (WindowStore() | SessionStore())):
            return _windows(store, query)
        case VersionedKeyQuery(), VersionedStore():
            return store.peek_version(_key_bytes(store, query.key), query.as_of)
        case MultiVersionedKeyQuery(), VersionedStore():
            return _versions(store, query)
    raise UnknownQuery(
        f"store {store.name} ({store.spec.kind.replace('_', '-')}) does not answer a {type(query).__name__}: "
        + _ANSWERED.get(store.spec.kind, "stores of joins answer none")
    )


_OF_WINDOWS = "window and session stores answer a WindowKeyQuery or WindowRangeQuery"
_ANSWERED = {
    "key_value": "ask for a KeyQuery or RangeQuery",
    "window": _OF_WINDOWS,
    "session": _OF_WINDOWS,
    "versioned_key_value": "ask for a VersionedKeyQuery or MultiVersionedKeyQuery",
}
"""Text by the kind of store: the queries that such a store answers."""


def _key_bytes(store: CachedStore, key: Any) -> bytes:
    try:
        data: bytes = store.spec.key_serde.serialize(key)
    except Exception as error:
        raise InvalidStateStore(
            f"{key!r} is no key of store {store.name}, whose keys are of "
            f"{type(store.spec.key_serde).__name__}: {error}"
        ) from error
    return data


def _range(store: CachedStore, query: RangeQuery) -> Page:
    lower = None if query.lower is None else _key_bytes(store, query.lower)
    upper = None if query.upper is None else _key_bytes(store, query.upper) + b"\x00"
    return _page(store, lower, upper, query, lambda stored_key: True)


def _windows(store: TimedStore, query: WindowKeyQuery | WindowRangeQuery) -> Page:
    """Return a page of windows or sessions."""
    lower = upper = None
    fits = _fits_span(store, query.time_from, query.time_to)
    if isinstance(query, WindowRangeQuery):
        return _page(store, None, None, query, fits)
    raw, key_of = _key_bytes(store, query.key), store.key_of
    if isinstance(store, SessionStore):
        lower, upper = raw, raw + b"\x80"  # times are not negative
    else:
        lower = window_key(raw, max(query.time_from, store.oldest, 0))
        upper = window_key(raw, min(max(query.time_to, -1), FOREVER - 1) + 1)

    def is_of_key(stored_key: bytes) -> bool:
        # A longer key may sort between the windows of a key.
        return key_of(stored_key) == raw and fits(stored_key)

    return _page(store, lower, upper, query, is_of_key)


def _versions(store: VersionedStore[Any, Any], query: MultiVersionedKeyQuery) -> list[VersionedRecord[Any]]:
    _check_limit(store, query.limit)
    key = _key_bytes(store, query.key)
    versions = list(islice(store.peek_versions(key, query.time_from, query.time_to), query.limit))
    return versions if query.descending else versions[::-1]


def _fits_span(store: TimedStore, first: int, last: int) -> Callable[[bytes], bool]:
    """Return a predicate of stored keys: True for windows that start in a span, and sessions that overlap it.

    It is False for those past retention.
    """
    oldest = store.oldest
    if not isinstance(store, SessionStore):
        first = max(first, oldest)
        return lambda stored_key: first <= window_start(stored_key) <= last

    def overlaps(stored_key: bytes) -> bool:
        end, start = session_bounds(stored_key)
        return end >= max(first, oldest) and start <= last

    return overlaps


def _page(
    store: CachedStore,
    lower: bytes | None,
    upper: bytes | None,
    query: RangeQuery | WindowKeyQuery | WindowRangeQuery,
    fits: Callable[[bytes], bool],
) -> Page:
    """Return the rows after the query's ``after``, until its limit, or a bound of this module, is reached."""
    limit, after = query.limit, query.after
    _check_limit(store, limit)
    if after is not None and query.descending:
        upper = after if upper is None else min(upper, after)
    elif after is not None:
        lower = max(lower or b"", after + b"\x00")
    rows: list[Row] = []
    size, last = 0, None
    stored: Iterator[_Raw] = store.rows(lower, upper, backwards=query.descending)
    for looked_at, (stored_key, value, timestamp, bytes_) in enumerate(islice(stored, LOOKED_AT_MAX), 1):
        if len(rows) == limit or size >= PAGE_BYTES_MAX:
            return Page(rows, last)
        last = stored_key
        if fits(stored_key):
            size += bytes_
            rows.append(Row(store.decode_key(stored_key), value, timestamp))
        if looked_at == LOOKED_AT_MAX:
            return Page(rows, last)
    return Page(rows)


def _check_limit(store: CachedStore, limit: int) -> None:
    if limit < 1:
        raise InvalidStateStore(f"a page of {limit} rows of store {store.name}: limit is 1 or more")
