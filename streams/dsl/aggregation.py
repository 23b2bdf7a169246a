"""`counted`, `reduced`, `aggregated` and `ranked`: the tables made of a grouped stream, windowed or not.

How a `Grouping` gets its table into the graph is in `grouping`; grouped tables are in `table_grouping`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from streams.dsl.grouping import Grouping
from streams.dsl.options import Materialized, as_materialized
from streams.dsl.table import Table
from streams.errors import TopologyError
from streams.processors.aggregates import aggregate as aggregations
from streams.processors.aggregates.top import Ranking, best_of_stream
from streams.serdes import ListOf, Long, SerdeLike

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")


def counted(grouping: Grouping, name: str | None, store: str | Materialized | None) -> Table:
    """Return the table of the number of records of each key, or of each key and window."""
    if isinstance(store, Materialized) and store.name is None and not grouping.windowing.is_sliding:
        grouping.stream.builder.names.take()  # Kafka names a store here that it then does not use
    materialized = as_materialized(store)
    return grouping.aggregated("KSTREAM-AGGREGATE-", aggregations.counting(), Long(), name, materialized)


def reduced(
    grouping: Grouping, reducer: Callable[[V, V], V], name: str | None, store: str | Materialized | None
) -> Table:
    """Return the table of reduced values: the first value, then ``reducer(so_far, value)``."""
    serde, materialized = grouping.stream.value_serde, as_materialized(store)
    return grouping.aggregated("KSTREAM-REDUCE-", aggregations.reducing(reducer), serde, name, materialized)


def aggregated(
    grouping: Grouping,
    initializer: Callable[[], A],
    aggregator: Callable[[K, V, A], A],
    value_serde: SerdeLike | None,
    name: str | None,
    store: str | Materialized | None,
    merger: Callable[[K, A, A], A] | None = None,
) -> Table:
    """Return the table of ``aggregator(key, value, so_far)``; sessions need ``merger(key, one, other)``."""
    aggregation, materialized = (
        aggregations.aggregating(initializer, aggregator, merger),
        as_materialized(store),
    )
    return grouping.aggregated("KSTREAM-AGGREGATE-", aggregation, value_serde, name, materialized)


def check_n(n: int) -> None:
    """Raise TopologyError for a ranking of no values."""
    if n < 1:
        raise TopologyError(f"top_n() and bottom_n() are of 1 value or more, not {n}")


def ranked(
    grouping: Grouping,
    n: int,
    ranking: Ranking,
    value_serde: SerdeLike | None,
    name: str | None,
    store: str | Materialized | None,
) -> Table:
    """Return a table with a list per group: the ``n`` values that rank first.

    ``value_serde`` serializes one value, not the list.
    """
    check_n(n)
    stream = grouping.stream
    serde = ListOf(stream.builder.value_serde("top_n()", value_serde, stream.value_serde))
    materialized = as_materialized(store)
    return grouping.aggregated("KSTREAM-AGGREGATE-", best_of_stream(n, ranking), serde, name, materialized)
