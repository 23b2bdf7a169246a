"""`KGroupedStream`, a stream grouped by key, and `CogroupedKStream`, several of them that make one table.

How nodes are put into the graph is in `aggregation` and `grouping`, and for several streams in `cogrouping`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

from streams.dsl.aggregation import aggregated, counted, ranked, reduced
from streams.dsl.cogrouping import Cogrouping
from streams.dsl.grouping import Grouping
from streams.dsl.nouns.ktable import KTable
from streams.dsl.nouns.windowed_cogrouped_kstream import (
    SessionWindowedCogroupedKStream,
    TimeWindowedCogroupedKStream,
)
from streams.dsl.nouns.windowed_kstream import SessionWindowedKStream, TimeWindowedKStream
from streams.dsl.options import Materialized, as_materialized
from streams.dsl.windowing import Windowing
from streams.errors import TopologyError
from streams.processors.aggregates.top import Ranking
from streams.processors.windowing.windows import (
    Duration,
    EmitStrategy,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    UnlimitedWindows,
)
from streams.serdes import SerdeLike

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")


class KGroupedStream(Generic[K, V]):
    """A stream grouped by key; an aggregation makes a table of it."""

    def __init__(self, grouping: Grouping) -> None:
        self._grouping = grouping

    @overload
    def windowed_by(
        self,
        windows: SessionWindows,
        *,
        emit_strategy: EmitStrategy | None = None,
        idle_timeout: Duration | None = None,
    ) -> SessionWindowedKStream[K, V]: ...

    @overload
    def windowed_by(
        self,
        windows: TimeWindows | SlidingWindows | UnlimitedWindows,
        *,
        emit_strategy: EmitStrategy | None = None,
        idle_timeout: Duration | None = None,
    ) -> TimeWindowedKStream[K, V]: ...

    def windowed_by(
        self,
        windows: TimeWindows | SlidingWindows | UnlimitedWindows | SessionWindows,
        *,
        emit_strategy: EmitStrategy | None = None,
        idle_timeout: Duration | None = None,
    ) -> TimeWindowedKStream[K, V] | SessionWindowedKStream[K, V]:
        """Group by time as well. ``emit_strategy``, ``idle_timeout``: as the method ``emit_strategy`` of what
        this returns.
        """
        windowing = Windowing(windows, emit_strategy or "on_window_update", idle_timeout)
        grouping = self._grouping.windowed_by(windowing)
        if isinstance(windows, SessionWindows):
            return SessionWindowedKStream(grouping)
        return TimeWindowedKStream(grouping)

    def count(self, *, name: str | None = None, store: str | Materialized | None = None) -> KTable[K, int]:
        """Count the records of each key."""
        return KTable(counted(self._grouping, name, store))

    def reduce(
        self,
        reducer: Callable[[V, V], V],
        *,
        name: str | None = None,
        store: str | Materialized | None = None,
    ) -> KTable[K, V]:
        """Reduce each key: the first value, then ``reducer(so_far, value)``."""
        return KTable(reduced(self._grouping, reducer, name, store))

    def aggregate(
        self,
        initializer: Callable[[], A],
        aggregator: Callable[[K, V, A], A],
        *,
        value_serde: SerdeLike | None = None,
        name: str | None = None,
        store: str | Materialized | None = None,
    ) -> KTable[K, A]:
        """Return a table of ``aggregator(key, value, so_far)`` per key, beginning with ``initializer()``.

        An aggregator that returns None deletes the key.

        The aggregator may change ``so_far`` in place and return it.
        """
        return KTable(aggregated(self._grouping, initializer, aggregator, value_serde, name, store))

    def top_n(
        self,
        n: int,
        *,
        by: Callable[[V], Any] | None = None,
        value_serde: SerdeLike | None = None,
        name: str | None = None,
        store: str | Materialized | None = None,
    ) -> KTable[K, list[V]]:
        """Return a table of the ``n`` greatest values of each key, greatest first.

        ``by(value)`` computes what values are compared by; without ``by`` the values themselves are compared.
        Among equals the earlier record comes first. ``value_serde`` is the serde of a single value.
        """
        return KTable(ranked(self._grouping, n, Ranking.of(by, smallest=False), value_serde, name, store))

    def bottom_n(
        self,
        n: int,
        *,
        by: Callable[[V], Any] | None = None,
        value_serde: SerdeLike | None = None,
        name: str | None = None,
        store: str | Materialized | None = None,
    ) -> KTable[K, list[V]]:
        """Return a table of the ``n`` smallest values of each key, smallest first.

        ``by(value)`` computes what values are compared by; without ``by`` the values themselves are compared.
        """
        return KTable(ranked(self._grouping, n, Ranking.of(by, smallest=True), value_serde, name, store))

    def cogroup(self, aggregator: Callable[[K, V, A], A]) -> CogroupedKStream[K, A]:
        """Begin an aggregation of several grouped streams into one table (KIP-150)."""
        return CogroupedKStream(Cogrouping({}).and_of(self._grouping, aggregator))


class CogroupedKStream(Generic[K, A]):
    """Grouped streams, each with an aggregator of its own, that make one table."""

    def __init__(self, cogrouping: Cogrouping) -> None:
        self._cogrouping = cogrouping

    def cogroup(
        self, grouped: KGroupedStream[K, V], aggregator: Callable[[K, V, A], A]
    ) -> CogroupedKStream[K, A]:
        """Aggregate another stream's records into the same table, by ``aggregator(key, value, so_far)``."""
        if not isinstance(grouped, KGroupedStream):
            raise TopologyError(f"cogroup() takes a KGroupedStream, not a {type(grouped).__name__}")
        return CogroupedKStream(self._cogrouping.and_of(grouped._grouping, aggregator))

    @overload
    def windowed_by(self, windows: SessionWindows) -> SessionWindowedCogroupedKStream[K, A]: ...

    @overload
    def windowed_by(
        self, windows: TimeWindows | SlidingWindows | UnlimitedWindows
    ) -> TimeWindowedCogroupedKStream[K, A]: ...

    def windowed_by(
        self, windows: TimeWindows | SlidingWindows | UnlimitedWindows | SessionWindows
    ) -> TimeWindowedCogroupedKStream[K, A] | SessionWindowedCogroupedKStream[K, A]:
        """Group by time as well."""
        cogrouping = self._cogrouping.windowed_by(Windowing(windows))
        if isinstance(windows, SessionWindows):
            return SessionWindowedCogroupedKStream(cogrouping)
        return TimeWindowedCogroupedKStream(cogrouping)

    def aggregate(
        self,
        initializer: Callable[[], A],
        *,
        value_serde: SerdeLike | None = None,
        name: str | None = None,
        store: str | Materialized | None = None,
    ) -> KTable[K, A]:
        """Aggregate the records of all grouped streams into one table, beginning with ``initializer()``."""
        materialized = as_materialized(store)
        return KTable(self._cogrouping.aggregated(initializer, None, value_serde, name, materialized))
