"""What can be asked of a store: queries, and the pages that those for many rows are answered by (KIP-805,
KIP-960, KIP-968, KIP-985).

Each page is read between two records, so it is of one moment; a scan of several pages is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from streams.serdes.windowed import FOREVER

PAGE_ROWS = 1000
"""Rows of a page, unless a query says how many."""


class ValueAndTimestamp(NamedTuple):
    """A value, and the time (ms) of the record that set it."""

    value: Any
    timestamp: int


class Row(NamedTuple):
    """A key (of a window or session: `Windowed`), its value, and that one's timestamp, ms."""

    key: Any
    value: Any
    timestamp: int


class Page(NamedTuple):
    """Some rows, in the byte order of their keys, or from the last to the first if the query is
    ``descending``. ``next``: what the query that goes on takes as ``after``; None if there are no more. A
    page may be short, or empty, although there are more.
    """

    rows: list[Row]
    next: bytes | None = None


@dataclass(frozen=True, slots=True)
class KeyQuery:
    """One key of a key-value store; answered by a `ValueAndTimestamp`, or None."""

    key: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeQuery:
    """The keys from ``lower`` to ``upper``, both included, of a key-value store; answered by a `Page`.

    None is no bound. ``after``: the ``next`` of the page before.
    """

    lower: Any = None
    upper: Any = None
    limit: int = PAGE_ROWS
    after: bytes | None = None
    descending: bool = False


@dataclass(frozen=True, slots=True)
class WindowKeyQuery:
    """One key's windows that start from ``time_from`` to ``time_to`` ms, both included, or its sessions that
    have any of that span in them; answered by a `Page`.
    """

    key: Any
    time_from: int = 0
    time_to: int = FOREVER
    limit: int = PAGE_ROWS
    after: bytes | None = None
    descending: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowRangeQuery:
    """As `WindowKeyQuery`, of all keys."""

    time_from: int = 0
    time_to: int = FOREVER
    limit: int = PAGE_ROWS
    after: bytes | None = None
    descending: bool = False


@dataclass(frozen=True, slots=True)
class VersionedKeyQuery:
    """A key of a versioned store: its latest version, or the one that was valid at ``as_of`` (ms); answered
    by a `VersionedRecord`, or None.
    """

    key: Any
    as_of: int | None = None


@dataclass(frozen=True, slots=True)
class MultiVersionedKeyQuery:
    """The versions that a key of a versioned store had at any time from ``time_from`` to ``time_to`` (ms,
    both included), latest first unless ``descending`` is False; answered by a list of `VersionedRecord`.

    ``limit``: no more than so many, the latest ones.
    """

    key: Any
    time_from: int | None = None
    time_to: int | None = None
    limit: int = PAGE_ROWS
    descending: bool = True


Query: TypeAlias = (
    KeyQuery | RangeQuery | WindowKeyQuery | WindowRangeQuery | VersionedKeyQuery | MultiVersionedKeyQuery
)
