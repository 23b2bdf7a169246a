"""`TimeWindowedKStream` and `SessionWindowedKStream`: a stream grouped by key and window, or session.

How nodes are put into the graph is in `aggregation` and `grouping`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from streams.dsl.aggregation import aggregated, counted, ranked, reduced
from streams.dsl.grouping import Grouping
from streams.dsl.nouns.ktable import KTable
from streams.dsl.options import Materialized
from streams.dsl.windowing import Windowing
from streams.processors.aggregates.top import Ranking
from streams.processors.windowing.windows import Duration, EmitStrategy
from streams.serdes import SerdeLike, Windowed

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")


class TimeWindowedKStream(Generic[K, V]):
    """A stream grouped by key and window; its tables are keyed by ``Windowed(key, Window(start, end))``."""

    def __init__(self, grouping: Grouping) -> None:
        self._grouping = grouping

    def emit_strategy(
        self, emit_strategy: EmitStrategy, *, idle_timeout: Duration | None = None
    ) -> TimeWindowedKStream[K, V]:
        """Emit results ``on_window_update``, or once per window with ``on_window_close`` (KIP-825).

        Once a task's inputs brought nothing for ``idle_timeout`` by wall clock, its windows are closed.
        """
        return TimeWindowedKStream(_emitting(self._grouping, emit_strategy, idle_timeout))

    def count(
        self, *, name: str | None = None, store: str | Materialized | None = None
    ) -> KTable[Windowed[K], int]:
        """Count the records of each key and window."""
        return KTable(counted(self._grouping, name, store))

    def reduce(
        self,
        reducer: Callable[[V, V], V],
        *,
        name: str | None = None,
        store: str | Materialized | None = None,
    ) -> KTable[Windowed[K], V]:
        """Reduce each key and window: the first value, then ``reducer(so_far, value)``."""
        return KTable(reduced(self._grouping, reducer, name, store))

    def aggregate(
        self,
        initializer: Callable[[], A],
        aggregator: Callable[[K, V, A], A],
        *,
        value_serde: SerdeLike | None = None,
        name: str | None = None,
        store: str | Materialized | None = None,
    ) -> KTable[Windowed[K], A]:
        """Return a table of ``aggregator(key, value, so_far)`` per key and window.

        Each window begins with ``initializer()``. An aggregator that returns None deletes the window.

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
    ) -> KTable[Windowed[K], list[V]]:
        """Return a table of the ``n`` greatest values of each window, greatest first.

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
    ) -> KTable[Windowed[K], list[V]]:
        """Return a table of the ``n`` smallest values of each window, smallest first.

        ``by(value)`` computes what values are compared by; without ``by`` the values themselves are compared.
        """
        return KTable(ranked(self._grouping, n, Ranking.of(by, smallest=True), value_serde, name, store))


class SessionWindowedKStream(Generic[K, V]):
    """A stream grouped by key and session; its tables are keyed by ``Windowed(key, Window(start, end))``.

    A session that is merged into another becomes a null.
    """

    def __init__(self, grouping: Grouping) -> None:
        self._grouping = grouping

    def emit_strategy(
        self, emit_strategy: EmitStrategy, *, idle_timeout: Duration | None = None
    ) -> SessionWindowedKStream[K, V]:
        """Emit results ``on_window_update``, or once per session with ``on_window_close`` (KIP-825).

        Once a task's inputs brought nothing for ``idle_timeout`` by wall clock, its sessions are closed.
        """
        return SessionWindowedKStream(_emitting(self._grouping, emit_strategy, idle_timeout))

    def count(
        self, *, name: str | None = None, store: str | Materialized | None = None
    ) -> KTable[Windowed[K], int]:
        """Count the records of each session."""
        return KTable(counted(self._grouping, name, store))

    def reduce(
        self,
        reducer: Callable[[V, V], V],
        *,
        name: str | None = None,
        store: str | Materialized | None = None,
    ) -> KTable[Windowed[K], V]:
        """Reduce each session: the first value, then ``reducer(so_far, value)``, also when sessions merge."""
        return KTable(reduced(self._grouping, reducer, name, store))

    def aggregate(
        self,
        initializer: Callable[[], A],
        aggregator: Callable[[K, V, A], A],
        merger: Callable[[K, A, A], A],
        *,
        value_serde: SerdeLike | None = None,
        name: str | None = None,
        store: str | Materialized | None = None,
    ) -> KTable[Windowed[K], A]:
        """Return a table of ``aggregator(key, value, so_far)`` per key and session.

        A session begins with ``initializer()``. A record that joins two sessions gets ``merger(key, one,
        other)`` of them as ``so_far``. An aggregator that returns None deletes the session. The aggregator
        may change ``so_far`` in place, the merger ``one``, and return it.
        """
        return KTable(aggregated(self._grouping, initializer, aggregator, value_serde, name, store, merger))

    def top_n(
        self,
        n: int,
        *,
        by: Callable[[V], Any] | None = None,
        value_serde: SerdeLike | None = None,
        name: str | None = None,
        store: str | Materialized | None = None,
    ) -> KTable[Windowed[K], list[V]]:
        """Return a table of the ``n`` greatest values of each session, greatest first.

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
    ) -> KTable[Windowed[K], list[V]]:
        """Return a table of the ``n`` smallest values of each session, smallest first.

        ``by(value)`` computes what values are compared by; without ``by`` the values themselves are compared.
        """
        return KTable(ranked(self._grouping, n, Ranking.of(by, smallest=True), value_serde, name, store))


def _emitting(grouping: Grouping, emit: EmitStrategy, idle_timeout: Duration | None) -> Grouping:
    return grouping.windowed_by(Windowing(grouping.windowing.windows, emit, idle_timeout))
