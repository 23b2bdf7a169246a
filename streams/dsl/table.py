"""`Table`: a table's updates as a stream, the store it can be read from, and how both are added to the graph.

A `KTable` (`nouns`) holds one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from streams.dsl.options import Joined, Materialized
from streams.dsl.stream import Stream
from streams.graph import Graph, ProcessorNode
from streams.processors.table import TableView, join_table, table_source
from streams.processors.wiring import Operator
from streams.serdes import SerdeLike, serde_for
from streams.state import StoreSpec

Step = Callable[[Any, Any], Any]
"""From key and value (not None) of a table to the derived table's value, or None."""


class StoreOnDemand:
    """A table's store, made only if somebody reads it: a table that is only passed on needs none."""

    def __init__(self, graph: Graph, spec: StoreSpec) -> None:
        self.spec = spec
        self.node: ProcessorNode | None = None
        self._graph = graph
        self._materialized = False

    def name_if_materialized(self) -> str | None:
        """The store's name, None if nobody asked for it; final once the topology is built."""
        return self.spec.name if self._materialized else None

    def materialize(self) -> str:
        """Ask for the store; returns its name."""
        if not self._materialized:
            assert self.node is not None, "the table's node comes before its readers"
            self._graph.add_store(self.spec)
            self.node.stores.append(self.spec.name)
            self._materialized = True
        return self.spec.name


@dataclass(frozen=True, slots=True)
class Table:
    """A table: the stream of its updates, the store below it, and the steps from there if it is derived."""

    stream: Stream
    store: StoreOnDemand
    steps: tuple[Step, ...] = ()

    @property
    def queryable_store_name(self) -> str | None:
        """The store's name, None for derived tables and those without a store."""
        return None if self.steps else self.store.name_if_materialized()

    def derived(
        self, prefix: str, name: str | None, operator: Operator, step: Step, *, new_values: bool = False
    ) -> Table:
        """A table made of this one, update by update, without a store of its own."""
        stream = self.stream.then(prefix, name, operator)
        stream = stream.with_new_values() if new_values else stream
        return replace(self, stream=stream, steps=(*self.steps, step))

    def view(self) -> TableView:
        """How to read the table; final once the topology is built."""
        return TableView(self.store.spec.name, self.steps)

    def joined(
        self, stream: Stream, joiner: Callable[[Any, Any], Any], options: Joined, *, left: bool
    ) -> Stream:
        """Add a node that joins a stream with this table; the stream that leaves it."""
        builder, table = stream.builder, self.stream
        if stream.rekeyed:
            stream = stream.repartitioned_for_join(
                options.name,
                builder.key_serde(stream.node, options.key_serde, stream.key_serde, table.key_serde),
                builder.value_serde(stream.node, options.value_serde, stream.value_serde),
            )
        operator = join_table(self.view, joiner, left=left)
        prefix = "KSTREAM-LEFTJOIN-" if left else "KSTREAM-JOIN-"
        stores = (self.store.materialize(),)
        joined = stream.then(prefix, options.name, operator, stores, takes_null_keys=left).with_new_values()
        sources = stream.sources | table.sources
        builder.graph.copartitions.append(sources)
        key_serde = serde_for(options.key_serde) or stream.key_serde or table.key_serde
        return replace(joined, sources=sources, key_serde=key_serde)


def put_in_store(
    parent: Stream, node: str, spec: StoreSpec, operator: Callable[[StoreOnDemand], Operator]
) -> Table:
    """Add a node of this name and operator that writes the store; the table it makes."""
    store = StoreOnDemand(parent.builder.graph, spec)
    store.node = ProcessorNode(name=node, parents=(parent.node,), operator=operator(store))
    parent.builder.graph.add(store.node)
    return Table(replace(parent, node=node, key_serde=spec.key_serde, value_serde=spec.value_serde), store)


def table_of_updates(parent: Stream, node: str, spec: StoreSpec, materialized: Materialized) -> Table:
    """A table of records that are its updates; it has a store if the user named one, or once it is read."""
    table = put_in_store(parent, node, spec, lambda store: table_source(store.name_if_materialized))
    if materialized.name is not None:
        table.store.materialize()
    return table


def table_of_stream(
    stream: Stream,
    key_serde: SerdeLike | None,
    value_serde: SerdeLike | None,
    name: str | None,
    materialized: Materialized,
) -> Table:
    """A stream read as a table's updates."""
    names = stream.builder.names
    node = names.node("KSTREAM-TOTABLE-", name)
    spec = stream.builder.store_spec(
        materialized.name or names.store("KSTREAM-TOTABLE-"),
        materialized,
        key_serde=key_serde or stream.key_serde,
        value_serde=value_serde or stream.value_serde,
        node=node,
    )
    parent = stream.repartitioned(node, spec.key_serde, spec.value_serde)
    return table_of_updates(parent, node, spec, materialized)
