"""`Cogrouping`: several streams grouped by the same key, and the table that their aggregations make together.

Each stream has a node that adds its records to the one store. All of these nodes lead to one node, the
table's (Kafka's CogroupedStreamAggregateBuilder).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from streams.dsl.grouping import Grouping
from streams.dsl.options import Materialized
from streams.dsl.stream import Stream
from streams.dsl.table import StoreOnDemand, Table, always_told, put_in_store
from streams.dsl.windowing import NO_WINDOWS, Windowing
from streams.errors import TopologyError
from streams.graph import ProcessorNode
from streams.processors.aggregates.aggregate import aggregating
from streams.processors.stateless.stateless import pass_through
from streams.processors.wiring import Operator
from streams.serdes import SerdeLike
from streams.state import StoreSpec

AGGREGATE, MERGE = "COGROUPKSTREAM-AGGREGATE-", "COGROUPKSTREAM-MERGE-"

Aggregators = dict[Grouping, Callable[[Any, Any, Any], Any]]


@dataclass(frozen=True, slots=True)
class Cogrouping:
    """Groupings with their aggregators, in order; the streams read back of those that have other keys."""

    aggregators: Aggregators
    windowing: Windowing = NO_WINDOWS
    _parents: dict[Grouping, Stream] = field(default_factory=dict)

    def and_of(self, grouping: Grouping, aggregator: Callable[[Any, Any, Any], Any]) -> Cogrouping:
        """Return a cogrouping with one more grouping; a grouping's second aggregator replaces its first."""
        if not isinstance(grouping, Grouping) or grouping.windowing.windows is not None:
            raise TopologyError("cogroup() takes a KGroupedStream that is not windowed, and its aggregator")
        return replace(self, aggregators={**self.aggregators, grouping: aggregator})

    def windowed_by(self, windowing: Windowing) -> Cogrouping:
        """Return a cogrouping of the same groupings, by window as well."""
        return replace(self, windowing=windowing)

    def aggregated(
        self,
        initializer: Callable[[], Any],
        merger: Callable[[Any, Any, Any], Any] | None,
        value_serde: SerdeLike | None,
        name: str | None,
        materialized: Materialized,
    ) -> Table:
        """Return the table of all aggregators' results."""
        first = next(iter(self.aggregators)).stream
        builder, windowing = first.builder, self.windowing
        store_name = materialized.name or builder.names.store(AGGREGATE)
        spec = builder.store_spec(
            store_name,
            materialized,
            key_serde=first.key_serde,
            value_serde=value_serde,
            node=name or store_name,
            **windowing.span(store_name, materialized),
        )
        parents = [self._parent(grouping, spec) for grouping in self.aggregators]
        sources = frozenset[str]().union(*(parent.sources for parent in parents))
        builder.graph.copartitions.append(sources)
        old_values = always_told()
        aggregations = [aggregating(initializer, each, merger) for each in self.aggregators.values()]
        table, nodes = None, []
        for number, (parent, aggregation) in enumerate(zip(parents, aggregations, strict=True)):
            node = builder.names.node(AGGREGATE, name, f"-cogroup-agg-{number}")
            operator = windowing.operator(store_name, aggregation, old_values, str(number or ""))
            grace_ms = windowing.closing_ms
            if table is None:
                table = put_in_store(
                    parent, node, spec, _always(operator), old_values=old_values, grace_ms=grace_ms
                )
            else:
                stores = [store_name]
                builder.graph.add(
                    ProcessorNode(
                        name=node, parents=(parent.node,), operator=operator, stores=stores, grace_ms=grace_ms
                    )
                )
            nodes.append(node)
        assert table is not None
        merged = builder.names.node(MERGE, name, "-cogroup-merge")
        builder.add_processor(merged, tuple(nodes), pass_through())
        key_serde = windowing.key_serde(spec.key_serde)
        return replace(table, stream=replace(table.stream, node=merged, sources=sources, key_serde=key_serde))

    def _parent(self, grouping: Grouping, spec: StoreSpec) -> Stream:
        """Return the stream to aggregate, behind a repartition topic if the key may have changed.

        Tables of the same groupings share the repartition topics. All aggregations of one grouping share the
        topic that the user named; Kafka shares it only if it optimizes.
        """
        stream, builder = grouping.stream, grouping.stream.builder
        if not stream.rekeyed:
            return stream
        names = builder.names.repartition(grouping.name or spec.name)
        parent = self._parents.get(grouping) or grouping.behind_topic
        if parent is None:
            parent = self._parents[grouping] = grouping.read_back(names, spec)
        return parent


def _always(operator: Operator) -> Callable[[StoreOnDemand], Operator]:
    return lambda store: operator
