"""The nouns of the language: `KStream`, `KTable` and the groupings between them.

Each one's methods return the others (a stream is grouped, a grouping counted into a table, a table read as a
stream), so they stand in one module, and are signatures only. How nodes are put into the graph is below:
`stream` for streams, `table` for tables, `grouping` for aggregations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar, overload

from streams.dsl.grouping import Grouping
from streams.dsl.options import Grouped, Joined, Materialized, Produced, as_materialized, options_with
from streams.dsl.stream import Stream
from streams.dsl.table import Table, table_of_stream
from streams.errors import TopologyError
from streams.processors import aggregate as aggregations
from streams.processors import stateless
from streams.processors.custom import Processor, run_processor
from streams.processors.windows import (
    EmitStrategy,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    UnlimitedWindows,
)
from streams.serdes import Long, SerdeLike, Windowed

K = TypeVar("K")
V = TypeVar("V")
NewK = TypeVar("NewK")
NewV = TypeVar("NewV")
T = TypeVar("T")
A = TypeVar("A")


class KStream(Generic[K, V]):
    """A stream under construction; every method adds a node and returns the stream below it.

    Serdes are handed on while keys (or values) stay what they are. An operator that may change the key marks
    the stream, and the next stateful operator sends it through a repartition topic.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    # -- record by record

    def filter(self, predicate: Callable[[K, V], bool], *, name: str | None = None) -> KStream[K, V]:
        """Keep records for which ``predicate(key, value)`` is true."""
        return KStream(self._stream.then("KSTREAM-FILTER-", name, stateless.filter_records(predicate)))

    def filter_not(self, predicate: Callable[[K, V], bool], *, name: str | None = None) -> KStream[K, V]:
        """Keep records for which ``predicate(key, value)`` is false."""
        operator = stateless.filter_records(predicate, wanted=False)
        return KStream(self._stream.then("KSTREAM-FILTER-", name, operator))

    def map(
        self, mapper: Callable[[K, V], tuple[NewK, NewV]], *, name: str | None = None
    ) -> KStream[NewK, NewV]:
        """Replace key and value by ``mapper(key, value)``."""
        stream = self._stream.then("KSTREAM-MAP-", name, stateless.map_records(mapper))
        return KStream(stream.with_new_keys().with_new_values())

    def map_values(self, mapper: Callable[[V], NewV], *, name: str | None = None) -> KStream[K, NewV]:
        """Replace the value by ``mapper(value)``."""
        stream = self._stream.then("KSTREAM-MAPVALUES-", name, stateless.map_values(mapper))
        return KStream(stream.with_new_values())

    def flat_map(
        self, mapper: Callable[[K, V], Iterable[tuple[NewK, NewV]]], *, name: str | None = None
    ) -> KStream[NewK, NewV]:
        """Replace a record by those of ``mapper(key, value)``."""
        stream = self._stream.then("KSTREAM-FLATMAP-", name, stateless.flat_map(mapper))
        return KStream(stream.with_new_keys().with_new_values())

    def flat_map_values(
        self, mapper: Callable[[V], Iterable[NewV]], *, name: str | None = None
    ) -> KStream[K, NewV]:
        """Replace a value by those of ``mapper(value)``, under the same key."""
        stream = self._stream.then("KSTREAM-FLATMAPVALUES-", name, stateless.flat_map_values(mapper))
        return KStream(stream.with_new_values())

    def select_key(self, selector: Callable[[K, V], NewK], *, name: str | None = None) -> KStream[NewK, V]:
        """Replace the key by ``selector(key, value)``."""
        return KStream(self._stream.selected(selector, name))

    def peek(self, action: Callable[[K, V], object], *, name: str | None = None) -> KStream[K, V]:
        """Call ``action(key, value)`` as records pass."""
        return KStream(self._stream.then("KSTREAM-PEEK-", name, stateless.peek(action)))

    def foreach(self, action: Callable[[K, V], object], *, name: str | None = None) -> None:
        """Call ``action(key, value)``; the stream ends here."""
        self._stream.then("KSTREAM-FOREACH-", name, stateless.foreach(action))

    def merge(self, other: KStream[K, V], *, name: str | None = None) -> KStream[K, V]:
        """Both streams' records in one; nothing is said about their order."""
        return KStream(self._stream.merged(other._stream, name))

    def process(
        self,
        supplier: Callable[[], Processor[K, V]],
        *,
        stores: Sequence[str] = (),
        name: str | None = None,
    ) -> KStream[Any, Any]:
        """Run a processor of your own; ``supplier()`` makes one per task."""
        if not callable(supplier):
            raise TopologyError(
                f"process() makes a processor per task: give it the class or a function, not {supplier!r}"
            )
        # Of all nodes these alone get their given name for nothing.
        node = self._stream.builder.names.node("KSTREAM-PROCESSOR-") if name is None else name
        stream = self._stream.then_named(node, run_processor(supplier), tuple(stores))
        return KStream(stream.with_new_keys().with_new_values())

    # -- out

    def to(
        self,
        topic: str,
        produced: Produced | None = None,
        *,
        key_serde: SerdeLike | None = None,
        value_serde: SerdeLike | None = None,
        name: str | None = None,
    ) -> None:
        """Write the stream to a topic; the stream ends here."""
        options = options_with(produced, Produced, key_serde=key_serde, value_serde=value_serde, name=name)
        self._stream.end_in(topic, options)

    # -- stateful

    def group_by_key(
        self,
        grouped: Grouped | None = None,
        *,
        key_serde: SerdeLike | None = None,
        value_serde: SerdeLike | None = None,
        name: str | None = None,
    ) -> KGroupedStream[K, V]:
        """Group by the key the stream has."""
        options = options_with(grouped, Grouped, key_serde=key_serde, value_serde=value_serde, name=name)
        return KGroupedStream(Grouping.of(self._stream, options))

    def group_by(
        self,
        selector: Callable[[K, V], NewK],
        grouped: Grouped | None = None,
        *,
        key_serde: SerdeLike | None = None,
        value_serde: SerdeLike | None = None,
        name: str | None = None,
    ) -> KGroupedStream[NewK, V]:
        """Group by ``selector(key, value)``: through a repartition topic."""
        options = options_with(grouped, Grouped, key_serde=key_serde, value_serde=value_serde, name=name)
        return KGroupedStream(Grouping.of(self._stream.selected(selector, options.name), options))

    def to_table(
        self,
        *,
        key_serde: SerdeLike | None = None,
        value_serde: SerdeLike | None = None,
        name: str | None = None,
        store: str | Materialized | None = None,
    ) -> KTable[K, V]:
        """Read the stream as a table's updates: the last value per key, a null value deletes."""
        return KTable(table_of_stream(self._stream, key_serde, value_serde, name, as_materialized(store)))

    def join(
        self,
        table: KTable[K, T],
        joiner: Callable[[V, T], NewV],
        joined: Joined | None = None,
        *,
        key_serde: SerdeLike | None = None,
        value_serde: SerdeLike | None = None,
        name: str | None = None,
    ) -> KStream[K, NewV]:
        """Join each record with the table's value for its key; ``joiner(value, table_value)``."""
        options = options_with(joined, Joined, key_serde=key_serde, value_serde=value_serde, name=name)
        return KStream(_table(table).joined(self._stream, joiner, options, left=False))

    def left_join(
        self,
        table: KTable[K, T],
        joiner: Callable[[V, T | None], NewV],
        joined: Joined | None = None,
        *,
        key_serde: SerdeLike | None = None,
        value_serde: SerdeLike | None = None,
        name: str | None = None,
    ) -> KStream[K, NewV]:
        """As `join`, but a record that finds nothing is joined with None."""
        options = options_with(joined, Joined, key_serde=key_serde, value_serde=value_serde, name=name)
        return KStream(_table(table).joined(self._stream, joiner, options, left=True))


def _table(table: KTable[K, V]) -> Table:
    if not isinstance(table, KTable):
        raise TopologyError(f"a stream is joined with a KTable, not with a {type(table).__name__}")
    return table._table


class KTable(Generic[K, V]):
    """A table under construction. Derived tables (filter, map_values) have a store of their own if ``store``
    names one.
    """

    def __init__(self, table: Table) -> None:
        self._table = table

    @property
    def queryable_store_name(self) -> str | None:
        """The store this very table can be read from, None for those without a store."""
        return self._table.queryable_store_name

    def filter(
        self,
        predicate: Callable[[K, V], bool],
        *,
        name: str | None = None,
        store: str | Materialized | None = None,
    ) -> KTable[K, V]:
        """Keep keys whose value passes; one that no longer does is deleted."""

        def step(key: K, value: V) -> V | None:
            return value if predicate(key, value) else None

        return KTable(
            self._table.derived("KTABLE-FILTER-", name, step, _materialized_if(store), is_filter=True)
        )

    def filter_not(
        self,
        predicate: Callable[[K, V], bool],
        *,
        name: str | None = None,
        store: str | Materialized | None = None,
    ) -> KTable[K, V]:
        """Keep keys whose value does not pass."""

        def inverse(key: K, value: V) -> bool:
            return not predicate(key, value)

        return self.filter(inverse, name=name, store=store)

    def map_values(
        self,
        mapper: Callable[[V], NewV],
        *,
        name: str | None = None,
        store: str | Materialized | None = None,
    ) -> KTable[K, NewV]:
        """Replace each value by ``mapper(value)``."""

        def step(key: K, value: V) -> NewV:
            return mapper(value)

        return KTable(self._table.derived("KTABLE-MAPVALUES-", name, step, _materialized_if(store)))

    def to_stream(
        self, key: Callable[[K, V], NewK] | None = None, *, name: str | None = None
    ) -> KStream[Any, V]:
        """The table's updates as records; ``key(key, value)`` gives them another key."""
        stream = self._table.to_stream(name)
        return KStream(stream if key is None else stream.selected(key, None))


def _materialized_if(store: str | Materialized | None) -> Materialized | None:
    return None if store is None else as_materialized(store)


class KGroupedStream(Generic[K, V]):
    """A stream grouped by key; an aggregation makes a table of it."""

    def __init__(self, grouping: Grouping) -> None:
        self._grouping = grouping

    @overload
    def windowed_by(
        self, windows: SessionWindows, *, emit_strategy: EmitStrategy | None = None
    ) -> SessionWindowedKStream[K, V]: ...

    @overload
    def windowed_by(
        self,
        windows: TimeWindows | SlidingWindows | UnlimitedWindows,
        *,
        emit_strategy: EmitStrategy | None = None,
    ) -> TimeWindowedKStream[K, V]: ...

    def windowed_by(
        self,
        windows: TimeWindows | SlidingWindows | UnlimitedWindows | SessionWindows,
        *,
        emit_strategy: EmitStrategy | None = None,
    ) -> TimeWindowedKStream[K, V] | SessionWindowedKStream[K, V]:
        """Group by time as well. ``emit_strategy``: as the method of that name of what this returns."""
        grouping = self._grouping.windowed_by(windows, emit_strategy)
        if isinstance(windows, SessionWindows):
            return SessionWindowedKStream(grouping)
        return TimeWindowedKStream(grouping)

    def count(self, *, name: str | None = None, store: str | Materialized | None = None) -> KTable[K, int]:
        """Count the records of each key."""
        return KTable(_counted(self._grouping, name, store))

    def reduce(
        self,
        reducer: Callable[[V, V], V],
        *,
        name: str | None = None,
        store: str | Materialized | None = None,
    ) -> KTable[K, V]:
        """The first value of each key, then ``reducer(so_far, value)``."""
        return KTable(_reduced(self._grouping, reducer, name, store))

    def aggregate(
        self,
        initializer: Callable[[], A],
        aggregator: Callable[[K, V, A], A],
        *,
        value_serde: SerdeLike | None = None,
        name: str | None = None,
        store: str | Materialized | None = None,
    ) -> KTable[K, A]:
        """``aggregator(key, value, so_far)``, beginning with ``initializer()``; None deletes the key.

        The aggregator may change ``so_far`` in place and return it.
        """
        return KTable(_aggregated(self._grouping, initializer, aggregator, value_serde, name, store))


class TimeWindowedKStream(Generic[K, V]):
    """A stream grouped by key and window; its tables are keyed by ``Windowed(key, Window(start, end))``."""

    def __init__(self, grouping: Grouping) -> None:
        self._grouping = grouping

    def emit_strategy(self, emit_strategy: EmitStrategy) -> TimeWindowedKStream[K, V]:
        """When results go on: ``on_window_update``, or once per window, ``on_window_close`` (KIP-825)."""
        return TimeWindowedKStream(self._grouping.emitting(emit_strategy))

    def count(
        self, *, name: str | None = None, store: str | Materialized | None = None
    ) -> KTable[Windowed[K], int]:
        """Count the records of each key and window."""
        return KTable(_counted(self._grouping, name, store))

    def reduce(
        self,
        reducer: Callable[[V, V], V],
        *,
        name: str | None = None,
        store: str | Materialized | None = None,
    ) -> KTable[Windowed[K], V]:
        """The first value of each key and window, then ``reducer(so_far, value)``."""
        return KTable(_reduced(self._grouping, reducer, name, store))

    def aggregate(
        self,
        initializer: Callable[[], A],
        aggregator: Callable[[K, V, A], A],
        *,
        value_serde: SerdeLike | None = None,
        name: str | None = None,
        store: str | Materialized | None = None,
    ) -> KTable[Windowed[K], A]:
        """``aggregator(key, value, so_far)``, beginning with ``initializer()``; None deletes the window.

        The aggregator may change ``so_far`` in place and return it.
        """
        return KTable(_aggregated(self._grouping, initializer, aggregator, value_serde, name, store))


class SessionWindowedKStream(Generic[K, V]):
    """A stream grouped by key and session; its tables are keyed by ``Windowed(key, Window(start, end))``.

    A session that is merged into another becomes a null.
    """

    def __init__(self, grouping: Grouping) -> None:
        self._grouping = grouping

    def emit_strategy(self, emit_strategy: EmitStrategy) -> SessionWindowedKStream[K, V]:
        """When results go on: ``on_window_update``, or once per session, ``on_window_close`` (KIP-825)."""
        return SessionWindowedKStream(self._grouping.emitting(emit_strategy))

    def count(
        self, *, name: str | None = None, store: str | Materialized | None = None
    ) -> KTable[Windowed[K], int]:
        """Count the records of each session."""
        return KTable(_counted(self._grouping, name, store))

    def reduce(
        self,
        reducer: Callable[[V, V], V],
        *,
        name: str | None = None,
        store: str | Materialized | None = None,
    ) -> KTable[Windowed[K], V]:
        """The first value of each session, then ``reducer(so_far, value)``, also of sessions that merge."""
        return KTable(_reduced(self._grouping, reducer, name, store))

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
        """``aggregator(key, value, so_far)`` of each record; ``so_far`` is ``merger(key, one, other)`` of the
        sessions that the record is in, beginning with ``initializer()``. None deletes the session.

        Both may change ``so_far``, which is ``one``, in place and return it.
        """
        return KTable(_aggregated(self._grouping, initializer, aggregator, value_serde, name, store, merger))


def _counted(grouping: Grouping, name: str | None, store: str | Materialized | None) -> Table:
    if isinstance(store, Materialized) and store.name is None:
        grouping.stream.builder.names.take()  # Kafka names a store here that it then does not use
    kept = as_materialized(store)
    return grouping.aggregated("KSTREAM-AGGREGATE-", aggregations.counting(), Long(), name, kept)


def _reduced(
    grouping: Grouping, reducer: Callable[[V, V], V], name: str | None, store: str | Materialized | None
) -> Table:
    serde, kept = grouping.stream.value_serde, as_materialized(store)
    return grouping.aggregated("KSTREAM-REDUCE-", aggregations.reducing(reducer), serde, name, kept)


def _aggregated(
    grouping: Grouping,
    initializer: Callable[[], A],
    aggregator: Callable[[K, V, A], A],
    value_serde: SerdeLike | None,
    name: str | None,
    store: str | Materialized | None,
    merger: Callable[[K, A, A], A] | None = None,
) -> Table:
    aggregation, kept = aggregations.aggregating(initializer, aggregator, merger), as_materialized(store)
    return grouping.aggregated("KSTREAM-AGGREGATE-", aggregation, value_serde, name, kept)
