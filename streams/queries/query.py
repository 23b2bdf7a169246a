"""Queries of a store, and the pages of rows that answer some of them (KIP-805, KIP-960, KIP-968, KIP-985).

A page is read between two records, so it is consistent; a scan of several pages is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from streams.serdes.windowed import FOREVER

PAGE_ROWS = 1000
"""The default number of rows of a page."""


class ValueAndTimestamp(NamedTuple):
    """A value, and the timestamp (ms) of the record that set it."""

    value: Any
    timestamp: int


class Row(NamedTuple):
    """A key (`Windowed` for a window or session), its value, and the value's timestamp, ms."""

    key: Any
    value: Any
    timestamp: int


class Page(NamedTuple):
    """A part of a query's rows. It may be short, or empty, although more rows follow."""

    rows: list[Row]
    """The rows, in the byte order of their keys, or from the last to the first if ``descending``."""
    next: bytes | None = None
    """The ``after`` of the query for the next page, None if there are no more rows."""


@dataclass(frozen=True, slots=True)
class KeyQuery:
    """A query for a key of a key-value store; answered by a `ValueAndTimestamp`, or None."""

    key: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeQuery:
    """A query for the keys from ``lower`` to ``upper``, both included, of a key-value store.

    Answered by a `Page`. A bound of None is no bound. ``after``: the ``next`` of the previous page.
    """

    lower: Any = None
    upper: Any = None
    limit: int = PAGE_ROWS
    after: bytes | None = None
    descending: bool = False


@dataclass(frozen=True, slots=True)
class WindowKeyQuery:
    """A query for a key's windows or sessions; answered by a `Page`.

    Windows start from ``time_from`` to ``time_to`` ms, both included; sessions overlap this span.
    """

    key: Any
    time_from: int = 0
    time_to: int = FOREVER
    limit: int = PAGE_ROWS
    after: bytes | None = None
    descending: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowRangeQuery:
    """A query for all keys' windows or sessions in a span of time, as in `WindowKeyQuery`."""

    time_from: int = 0
    time_to: int = FOREVER
    limit: int = PAGE_ROWS
    after: bytes | None = None
    descending: bool = False


@dataclass(frozen=True, slots=True)
class VersionedKeyQuery:
    """A query for a key of a versioned store; answered by a `VersionedRecord`, or None.

    It is for the latest version, or for the one that was valid at ``as_of`` (ms).
    """

    key: Any
    as_of: int | None = None


@dataclass(frozen=True, slots=True)
class MultiVersionedKeyQuery:
    """A query for the versions of a key that were valid in a span of time; answered by `VersionedRecord`s.

    The span is from ``time_from`` to ``time_to``, ms, both included. The latest version comes first if
    ``descending``. ``limit``: the most versions, counted from the latest.
    """

    key: Any
    time_from: int | None = None
    time_to: int | None = None
    limit: int = PAGE_ROWS
    descending: bool = True


Query: TypeAlias = (
    KeyQuery | RangeQuery | WindowKeyQuery | WindowRangeQuery | VersionedKeyQuery | MultiVersionedKeyQuery
)
