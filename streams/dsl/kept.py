"""`Kept`: a table's place in the graph, the store it can be read from, and how it came to be there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from streams.dsl.options import Joined, Materialized
from streams.dsl.strand import Strand
from streams.graph import Graph, ProcessorNode
from streams.processors.table import TableView, join_table, table_source
from streams.processors.wiring import Operator
from streams.serdes import SerdeLike, serde_for
from streams.state import StoreSpec

Step = Callable[[Any, Any], Any]
"""From key and value (not None) of a table to the derived table's value, or None."""


class StoreOnDemand:
    """A table's store, made only if somebody reads it: a table that just flows through needs none."""

    def __init__(self, graph: Graph, spec: StoreSpec) -> None:
        self.spec = spec
        self.node: ProcessorNode | None = None
        self._graph = graph
        self._kept = False

    def name_if_kept(self) -> str | None:
        """The store's name, None if nobody asked for it; final once the topology is built."""
        return self.spec.name if self._kept else None

    def keep(self) -> str:
        """Ask for the store; returns its name."""
        if not self._kept:
            assert self.node is not None, "the table's node comes before its readers"
            self._graph.add_store(self.spec)
            self.node.stores.append(self.spec.name)
            self._kept = True
        return self.spec.name


@dataclass(frozen=True, slots=True)
class Kept:
    """A table: the strand of its updates, its store, and the steps from there if it is derived."""

    strand: Strand
    store: StoreOnDemand
    steps: tuple[Step, ...] = ()

    @property
    def queryable_store_name(self) -> str | None:
        """The store's name, None for derived tables and those nobody keeps."""
        return None if self.steps else self.store.name_if_kept()

    def derived(
        self, prefix: str, name: str | None, operator: Operator, step: Step, *, new_values: bool = False
    ) -> Kept:
        """A table made of this one, update by update, without a store of its own."""
        strand = self.strand.then(prefix, name, operator)
        strand = strand.with_new_values() if new_values else strand
        return replace(self, strand=strand, steps=(*self.steps, step))

    def view(self) -> TableView:
        """How to read the table; final once the topology is built."""
        return TableView(self.store.spec.name, self.steps)

    def joined(
        self, stream: Strand, joiner: Callable[[Any, Any], Any], options: Joined, *, left: bool
    ) -> Strand:
        """Where a stream goes on with this table's values."""
        weaver, table = stream.weaver, self.strand
        if stream.rekeyed:
            stream = stream.repartitioned(
                options.name or stream.node,
                weaver.key_serde(stream.node, options.key_serde, stream.key_serde, table.key_serde),
                weaver.value_serde(stream.node, options.value_serde, stream.value_serde),
                named=options.name is not None,
                keep_null_keys=left,
            )
        operator = join_table(self.view, joiner, left=left)
        prefix = "KSTREAM-LEFTJOIN-" if left else "KSTREAM-JOIN-"
        joined = stream.then(prefix, options.name, operator, (self.store.keep(),)).with_new_values()
        sources = stream.sources | table.sources
        weaver.graph.copartitions.append(sources)
        key_serde = serde_for(options.key_serde) or stream.key_serde or table.key_serde
        return replace(joined, sources=sources, key_serde=key_serde)


def put_in_store(
    parent: Strand, node: str, spec: StoreSpec, operator: Callable[[StoreOnDemand], Operator]
) -> Kept:
    """A table made by a node, of this name and operator, that writes the store."""
    store = StoreOnDemand(parent.weaver.graph, spec)
    store.node = ProcessorNode(name=node, parents=(parent.node,), operator=operator(store))
    parent.weaver.graph.add(store.node)
    return Kept(replace(parent, node=node, key_serde=spec.key_serde, value_serde=spec.value_serde), store)


def table_of_updates(parent: Strand, node: str, spec: StoreSpec, kept: Materialized) -> Kept:
    """A table of records that are its updates; kept if the user named the store, or once it is read."""
    table = put_in_store(parent, node, spec, lambda store: table_source(store.name_if_kept))
    if kept.name is not None:
        table.store.keep()
    return table


def table_of_stream(
    stream: Strand,
    key_serde: SerdeLike | None,
    value_serde: SerdeLike | None,
    name: str | None,
    kept: Materialized,
) -> Kept:
    """A stream read as a table's updates."""
    names = stream.weaver.names
    node = names.node("KSTREAM-TOTABLE-", name)
    spec = stream.weaver.store_spec(
        kept.name or names.store("KSTREAM-TOTABLE-"),
        kept,
        key_serde=key_serde or stream.key_serde,
        value_serde=value_serde or stream.value_serde,
        node=node,
    )
    parent = stream.repartitioned(name or node, spec.key_serde, spec.value_serde, named=name is not None)
    return table_of_updates(parent, node, spec, kept)
