"""`TimeWindowedCogroupedKStream` and `SessionWindowedCogroupedKStream`: cogrouped, by window or session.

How nodes are put into the graph is in `cogrouping`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from streams.dsl.cogrouping import Cogrouping
from streams.dsl.nouns.ktable import KTable
from streams.dsl.options import Materialized, as_materialized
from streams.serdes import SerdeLike, Windowed

K = TypeVar("K")
A = TypeVar("A")


class TimeWindowedCogroupedKStream(Generic[K, A]):
    """A `CogroupedKStream` that is grouped by window as well."""

    def __init__(self, cogrouping: Cogrouping) -> None:
        self._cogrouping = cogrouping

    def aggregate(
        self,
        initializer: Callable[[], A],
        *,
        value_serde: SerdeLike | None = None,
        name: str | None = None,
        store: str | Materialized | None = None,
    ) -> KTable[Windowed[K], A]:
        """Aggregate the records of all grouped streams into one table, beginning with ``initializer()``."""
        materialized = as_materialized(store)
        return KTable(self._cogrouping.aggregated(initializer, None, value_serde, name, materialized))


class SessionWindowedCogroupedKStream(Generic[K, A]):
    """A `CogroupedKStream` that is grouped by session as well."""

    def __init__(self, cogrouping: Cogrouping) -> None:
        self._cogrouping = cogrouping

    def aggregate(
        self,
        initializer: Callable[[], A],
        merger: Callable[[K, A, A], A],
        *,
        value_serde: SerdeLike | None = None,
        name: str | None = None,
        store: str | Materialized | None = None,
    ) -> KTable[Windowed[K], A]:
        """Aggregate the records of all grouped streams into one table, beginning with ``initializer()``.

        Sessions that a record merges become ``merger(key, one, other)``.
        """
        materialized = as_materialized(store)
        return KTable(self._cogrouping.aggregated(initializer, merger, value_serde, name, materialized))
