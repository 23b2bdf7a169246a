"""`KTable`, and `KGroupedTable`, a table grouped by a key of its values, of which tables are made again.

How nodes are put into the graph is in `table` and `table_grouping`, and in files for joins and suppression.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from streams.dsl.aggregation import check_n
from streams.dsl.arity import check_supplier, takes_key
from streams.dsl.foreign_key import join_foreign
from streams.dsl.options import Grouped, Materialized, as_materialized, options_with
from streams.dsl.suppression import Suppressed
from streams.dsl.suppression import suppressed as suppress_updates
from streams.dsl.table import Table
from streams.dsl.table_grouping import TableGrouping
from streams.dsl.table_join import join_tables
from streams.errors import TopologyError
from streams.processors.aggregates import aggregate as aggregations
from streams.processors.aggregates import grouped_table
from streams.processors.aggregates.top import Ranking, all_of_table
from streams.processors.tables.transform_values import ValueTransformer
from streams.serdes import ListOf, Long, SerdeLike

if TYPE_CHECKING:
    from streams.dsl.nouns.kstream import KStream

K = TypeVar("K")
V = TypeVar("V")
NewK = TypeVar("NewK")
NewV = TypeVar("NewV")
T = TypeVar("T")
A = TypeVar("A")
ForeignK = TypeVar("ForeignK")


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

    @overload
    def map_values(
        self,
        mapper: Callable[[V], NewV],
        *,
        name: str | None = None,
        store: str | Materialized | None = None,
    ) -> KTable[K, NewV]: ...
    @overload
    def map_values(
        self,
        mapper: Callable[[K, V], NewV],
        *,
        name: str | None = None,
        store: str | Materialized | None = None,
    ) -> KTable[K, NewV]: ...
    def map_values(
        self,
        mapper: Callable[..., NewV],
        *,
        name: str | None = None,
        store: str | Materialized | None = None,
    ) -> KTable[K, NewV]:
        """Replace each value by ``mapper(value)``, or ``mapper(key, value)``."""

        def of_value(key: K, value: V) -> NewV:
            return mapper(value)

        step = mapper if takes_key(mapper, "map_values") else of_value
        return KTable(self._table.derived("KTABLE-MAPVALUES-", name, step, _materialized_if(store)))

    def group_by(
        self,
        selector: Callable[[K, V], tuple[NewK, NewV]],
        grouped: Grouped | None = None,
        *,
        key_serde: SerdeLike | None = None,
        value_serde: SerdeLike | None = None,
        name: str | None = None,
    ) -> KGroupedTable[NewK, NewV]:
        """Group by the key, and with the value, of ``selector(key, value)``: through a repartition topic.

        A row for which the selector gives a null key or value is in no group.
        """
        options = options_with(grouped, Grouped, key_serde=key_serde, value_serde=value_serde, name=name)
        return KGroupedTable(TableGrouping(self._table, selector, options))

    def transform_values(
        self,
        supplier: Callable[[], ValueTransformer[K, V, NewV]],
        *,
        stores: Sequence[str] = (),
        name: str | None = None,
        store: str | Materialized | None = None,
    ) -> KTable[K, NewV]:
        """Transform each value by a `ValueTransformer` of your own, which may have stores and schedules.

        ``supplier()`` makes one per task, and one for each node that looks values up in a table without a
        store.
        """
        check_supplier(supplier, "transform_values", "transformer")
        materialized = _materialized_if(store)
        return KTable(self._table.transformed(supplier, name, tuple(stores), materialized))

    def suppress(self, suppressed: Suppressed) -> KTable[K, V]:
        """Hold updates back: ``Suppressed.until_window_closes()`` or ``Suppressed.until_time_limit(...)``."""
        return KTable(suppress_updates(self._table, suppressed))

    @overload
    def to_stream(self, key: None = None, *, name: str | None = None) -> KStream[K, V]: ...
    @overload
    def to_stream(self, key: Callable[[K, V], NewK], *, name: str | None = None) -> KStream[NewK, V]: ...
    def to_stream(
        self, key: Callable[[K, V], Any] | None = None, *, name: str | None = None
    ) -> KStream[Any, V]:
        """Return the table's updates as a stream; ``key(key, value)`` computes a new key if given."""
        from streams.dsl.nouns.kstream import KStream  # here, since a stream makes tables too

        stream = self._table.to_stream(name)
        return KStream(stream if key is None else stream.selected(key, None))

    # -- joins

    @overload
    def join(
        self,
        other: KTable[K, T],
        joiner: Callable[[V, T], NewV],
        *,
        foreign_key: None = None,
        name: str | None = None,
        store: str | Materialized | None = None,
    ) -> KTable[K, NewV]: ...
    @overload
    def join(
        self,
        other: KTable[ForeignK, T],
        joiner: Callable[[V, T], NewV],
        *,
        foreign_key: Callable[[V], ForeignK | None],
        name: str | None = None,
        store: str | Materialized | None = None,
    ) -> KTable[K, NewV]: ...
    @overload
    def join(
        self,
        other: KTable[ForeignK, T],
        joiner: Callable[[V, T], NewV],
        *,
        foreign_key: Callable[[K, V], ForeignK | None],
        name: str | None = None,
        store: str | Materialized | None = None,
    ) -> KTable[K, NewV]: ...
    def join(
        self,
        other: KTable[Any, T],
        joiner: Callable[[V, T], NewV],
        *,
        foreign_key: Callable[..., Any] | None = None,
        name: str | None = None,
        store: str | Materialized | None = None,
    ) -> KTable[K, NewV]:
        """Return a table of the keys that both tables have, with ``joiner(value, other)`` as their values.

        ``store`` keeps the result in a store. With ``foreign_key``, a function of (value) or (key, value),
        each row is joined with the other table's row of that key (KIP-213). Any number of rows may have the
        same foreign key.
        """
        return self._joined(other, joiner, name, store, foreign_key)

    @overload
    def left_join(
        self,
        other: KTable[K, T],
        joiner: Callable[[V, T | None], NewV],
        *,
        foreign_key: None = None,
        name: str | None = None,
        store: str | Materialized | None = None,
    ) -> KTable[K, NewV]: ...
    @overload
    def left_join(
        self,
        other: KTable[ForeignK, T],
        joiner: Callable[[V, T | None], NewV],
        *,
        foreign_key: Callable[[V], ForeignK | None],
        name: str | None = None,
        store: str | Materialized | None = None,
    ) -> KTable[K, NewV]: ...
    @overload
    def left_join(
        self,
        other: KTable[ForeignK, T],
        joiner: Callable[[V, T | None], NewV],
        *,
        foreign_key: Callable[[K, V], ForeignK | None],
        name: str | None = None,
        store: str | Materialized | None = None,
    ) -> KTable[K, NewV]: ...
    def left_join(
        self,
        other: KTable[Any, T],
        joiner: Callable[[V, T | None], NewV],
        *,
        foreign_key: Callable[..., Any] | None = None,
        name: str | None = None,
        store: str | Materialized | None = None,
    ) -> KTable[K, NewV]:
        """Join as `join` does, and keep this table's other keys, joined with None."""
        return self._joined(other, joiner, name, store, foreign_key, keep_left=True)

    def outer_join(
        self,
        other: KTable[K, T],
        joiner: Callable[[V | None, T | None], NewV],
        *,
        name: str | None = None,
        store: str | Materialized | None = None,
    ) -> KTable[K, NewV]:
        """Return a table of the keys of either table; a missing row is joined as None."""
        return self._joined(other, joiner, name, store, None, keep_left=True, keep_right=True)

    def _joined(
        self,
        other: KTable[Any, Any],
        joiner: Callable[..., Any],
        name: str | None,
        store: str | Materialized | None,
        foreign_key: Callable[..., Any] | None,
        *,
        keep_left: bool = False,
        keep_right: bool = False,
    ) -> KTable[Any, Any]:
        if not isinstance(other, KTable):
            raise TopologyError(f"a table is joined with a KTable, not with a {type(other).__name__}")
        mine, others = self._table, other._table
        if foreign_key is not None:
            options = as_materialized(store)
            return KTable(join_foreign(mine, others, foreign_key, joiner, name, options, keep_left=keep_left))
        materialized, sides = _materialized_if(store), {"keep_left": keep_left, "keep_right": keep_right}
        return KTable(join_tables(mine, others, joiner, name, materialized, **sides))


class KGroupedTable(Generic[K, V]):
    """A table grouped by a key of its values; an aggregation makes a table of it.

    An update of the table is first taken back from what was made of the value before, then added.
    """

    def __init__(self, grouping: TableGrouping) -> None:
        self._grouping = grouping

    def count(self, *, name: str | None = None, store: str | Materialized | None = None) -> KTable[K, int]:
        """Count the table's rows of each key; a key that has none any more stays, with 0."""
        return self._aggregated("KTABLE-AGGREGATE-", grouped_table.counting(), Long(), name, store)

    def reduce(
        self,
        adder: Callable[[V, V], V],
        subtractor: Callable[[V, V], V | None],
        *,
        name: str | None = None,
        store: str | Materialized | None = None,
    ) -> KTable[K, V]:
        """Return a table with one value per group, reduced from the values of the group's rows.

        A group's first row gives the first value. Each further row gives ``adder(so_far, value)``. When a row
        is updated, deleted or moved to another group, ``subtractor(so_far, value)`` takes its old value out.
        """
        aggregation = grouped_table.reducing(adder, subtractor)
        return self._aggregated("KTABLE-REDUCE-", aggregation, self._grouping.value_serde, name, store)

    def aggregate(
        self,
        initializer: Callable[[], A],
        adder: Callable[[K, V, A], A],
        subtractor: Callable[[K, V, A], A | None],
        *,
        value_serde: SerdeLike | None = None,
        name: str | None = None,
        store: str | Materialized | None = None,
    ) -> KTable[K, A]:
        """Return a table with a value per group, beginning with ``initializer()``.

        Each new row gives ``adder(key, value, so_far)``. ``subtractor`` takes a row's old value out when the
        row is updated, deleted or moved to another group. Either may change ``so_far`` in place and return
        it. One that returns None deletes the group.
        """
        aggregation = grouped_table.aggregating(initializer, adder, subtractor)
        return self._aggregated("KTABLE-AGGREGATE-", aggregation, value_serde, name, store)

    def top_n(
        self,
        n: int,
        *,
        by: Callable[[V], Any] | None = None,
        value_serde: SerdeLike | None = None,
        name: str | None = None,
        store: str | Materialized | None = None,
    ) -> KTable[K, list[V]]:
        """Return a table of the ``n`` greatest rows of each key, greatest first.

        ``by(row)`` computes what rows are compared by; without ``by`` the rows themselves are compared.
        Among equals the one that became so earlier comes first. All rows of a key are kept, in one value of
        the store, since any may be taken back. ``value_serde`` is the serde of a single row.
        """
        return self._ranked(n, Ranking.of(by, smallest=False), value_serde, name, store)

    def bottom_n(
        self,
        n: int,
        *,
        by: Callable[[V], Any] | None = None,
        value_serde: SerdeLike | None = None,
        name: str | None = None,
        store: str | Materialized | None = None,
    ) -> KTable[K, list[V]]:
        """Return a table of the ``n`` smallest rows of each key, smallest first.

        ``by(row)`` computes what rows are compared by; without ``by`` the rows themselves are compared.
        """
        return self._ranked(n, Ranking.of(by, smallest=True), value_serde, name, store)

    def _ranked(
        self,
        n: int,
        ranking: Ranking,
        value_serde: SerdeLike | None,
        name: str | None,
        store: str | Materialized | None,
    ) -> KTable[Any, Any]:
        check_n(n)
        serde = ListOf(self._grouping.known_value_serde("top_n()", value_serde))
        materialized = as_materialized(store)
        table = self._grouping.aggregated(
            "KTABLE-AGGREGATE-", all_of_table(ranking), serde, name, materialized
        )
        return KTable(table.shortened(n, name, serde))

    def _aggregated(
        self,
        prefix: str,
        aggregation: aggregations.Aggregation,
        value_serde: SerdeLike | None,
        name: str | None,
        store: str | Materialized | None,
    ) -> KTable[Any, Any]:
        return KTable(
            self._grouping.aggregated(prefix, aggregation, value_serde, name, as_materialized(store))
        )


def _materialized_if(store: str | Materialized | None) -> Materialized | None:
    return None if store is None else as_materialized(store)
