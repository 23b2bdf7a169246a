"""`Table`: a table's updates as a stream, how it is read, and how both are added to the graph.

A `KTable` (`nouns.ktable`) holds one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from streams.dsl.arity import joiner_takes_key
from streams.dsl.options import Joined, Materialized
from streams.dsl.stream import Stream
from streams.dsl.versioned_join import join_versioned
from streams.graph import Graph, ProcessorNode
from streams.processors.joins.lookup_join import join_selected, record_key
from streams.processors.tables.change import new_values
from streams.processors.tables.table import (
    DerivedView,
    OldValues,
    Step,
    StoreView,
    TableView,
    derive_table,
    join_table,
    table_source,
    versioned,
)
from streams.processors.tables.transform_values import Supplier, TransformedView, transform_values
from streams.processors.wiring import Operator
from streams.serdes import Serde, SerdeLike, serde_for
from streams.state import StoreSpec


class StoreOnDemand:
    """A table's store, made only if somebody reads it: a table that is only passed on needs none."""

    def __init__(self, graph: Graph, spec: StoreSpec) -> None:
        self.spec = spec
        self.node: ProcessorNode | None = None
        self._graph = graph
        self._materialized = False

    def name_if_materialized(self) -> str | None:
        """Return the store's name, None if the table has no store; final once the topology is built."""
        return self.spec.name if self._materialized else None

    def materialize(self) -> str:
        """Ask for the store; returns its name."""
        if not self._materialized:
            assert self.node is not None, "the table's node comes before its readers"
            self._graph.add_store(self.spec)
            self.node.stores.append(self.spec.name)
            self._materialized = True
        return self.spec.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table: its updates (`Change`s) as a stream, and how it is read.

    `store` is its own, None if it has none; `old_values` whether its updates tell the value before; `read`
    makes the stores that reading it takes, and says how. `is_versioned`: its updates may come out of order
    (KIP-914), as its store is, or without one the table's above.
    """

    stream: Stream
    old_values: OldValues
    read: Callable[[], TableView]
    store: StoreOnDemand | None = None
    is_versioned: bool = False

    @property
    def queryable_store_name(self) -> str | None:
        """The store's name, None for derived tables and those without a store."""
        return None if self.store is None else self.store.name_if_materialized()

    def derived(
        self,
        prefix: str,
        name: str | None,
        step: Step,
        materialized: Materialized | None,
        *,
        is_filter: bool = False,
    ) -> Table:
        """Return a table derived from this one, update by update; it has a store if the user named one."""
        if materialized is not None and materialized.name is None:
            self.stream.builder.names.store(prefix)  # as Kafka does, which takes none for it either
        store_name = None if materialized is None else materialized.name
        old_values = self._old_values_of_derived(store_name)
        if is_filter:
            old_values.are_told = self.old_values.ask(force=False)
        return self._below(
            self.stream.builder.names.node(prefix, name),
            derive_table(step, old_values, store_name, is_filter=is_filter, is_versioned=self.is_versioned),
            materialized,
            old_values,
            lambda: DerivedView(self.read(), step),
            keeps_values=is_filter,
        )

    def shortened(self, n: int, name: str | None, value_serde: Serde[Any]) -> Table:
        """Return a table of the first ``n`` items of each value, which is a list."""
        node = None if name is None else f"{name}-first"
        table = self.derived("KTABLE-MAPVALUES-", node, lambda key, rows: rows[:n], None)
        return replace(table, stream=replace(table.stream, value_serde=value_serde))

    def transformed(
        self,
        supplier: Supplier,
        name: str | None,
        stores: tuple[str, ...],
        materialized: Materialized | None,
    ) -> Table:
        """Return a table of a transformer's results for each value; it has a store if the user named one."""
        store_name = None if materialized is None else materialized.name
        old_values = self._old_values_of_derived(store_name)
        return self._below(
            self.stream.builder.names.node("KTABLE-TRANSFORMVALUES-", name),
            transform_values(supplier, old_values, store_name, is_versioned=self.is_versioned),
            materialized,
            old_values,
            lambda: TransformedView(self.read(), supplier, stores),
            stores=stores,
        )

    def _old_values_of_derived(self, store_name: str | None) -> OldValues:
        # A store of its own knows the value before, whatever the parent tells.
        return OldValues(lambda force: store_name is not None or self.old_values.ask(force=force))

    def _below(
        self,
        node: str,
        operator: Operator,
        materialized: Materialized | None,
        old_values: OldValues,
        read: Callable[[], TableView],
        *,
        stores: tuple[str, ...] = (),
        keeps_values: bool = False,
    ) -> Table:
        """Add a node of a derived table; ``read``: how that is read without a store."""
        stream = self.stream if keeps_values else replace(self.stream, value_serde=None)
        builder = stream.builder
        if materialized is None or materialized.name is None:
            builder.add_processor(node, (stream.node,), operator, stores)
            stream = _with_serdes(replace(stream, node=node), materialized)
            # As in Kafka, where serdes that are given for a table without a store make an unversioned one.
            is_versioned = self.is_versioned and materialized is None
            return Table(stream=stream, old_values=old_values, read=read, is_versioned=is_versioned)
        spec = builder.store_spec(
            materialized.name,
            materialized,
            key_serde=stream.key_serde,
            value_serde=stream.value_serde,
            node=node,
        )
        table = put_in_store(stream, node, spec, lambda store: operator, old_values=old_values)
        assert table.store is not None and table.store.node is not None
        table.store.node.stores.extend(stores)
        return table

    def to_stream(self, name: str | None) -> Stream:
        """Add a node that makes records of the updates; the stream that leaves it."""
        return self.stream.then("KTABLE-TOSTREAM-", name, new_values())

    def joined(self, stream: Stream, joiner: Callable[..., Any], options: Joined, *, left: bool) -> Stream:
        """Add a node that joins a stream with this table; the stream that leaves it."""
        builder, table = stream.builder, self.stream
        if stream.rekeyed:
            stream = stream.repartitioned_for_join(
                options.name,
                builder.key_serde(stream.node, options.key_serde, stream.key_serde, table.key_serde),
                builder.value_serde(stream.node, options.value_serde, stream.value_serde),
            )
        view = self.read()
        node = builder.names.node("KSTREAM-LEFTJOIN-" if left else "KSTREAM-JOIN-", options.name)
        if (past := versioned(view)) is not None or options.grace is not None:
            is_versioned = self.is_versioned
            operator, stores = join_versioned(
                node, stream, past, joiner, options, left=left, is_versioned=is_versioned
            )
        else:
            stores = view.stores
            operator = (
                join_selected(view, record_key, joiner, left=left)
                if joiner_takes_key(joiner)
                else join_table(view, joiner, left=left)
            )
        joined = stream.then_named(node, operator, stores, takes_null_keys=left)
        joined = joined.with_new_values()
        sources = stream.sources | table.sources
        builder.graph.copartitions.append(sources)
        key_serde = serde_for(options.key_serde) or stream.key_serde or table.key_serde
        return replace(joined, sources=sources, key_serde=key_serde)


def put_in_store(
    parent: Stream,
    node: str,
    spec: StoreSpec,
    operator: Callable[[StoreOnDemand], Operator],
    *,
    old_values: OldValues,
    on_demand: bool = False,
    grace_ms: int | None = None,
) -> Table:
    """Add a node of this name and operator that writes the store; the table it makes.

    ``on_demand``: the store is there only if the table is read. ``grace_ms``: of windows.
    """
    store = StoreOnDemand(parent.builder.graph, spec)
    store.node = ProcessorNode(name=node, parents=(parent.node,), operator=operator(store), grace_ms=grace_ms)
    parent.builder.graph.add(store.node)
    if not on_demand:
        store.materialize()
    return Table(
        stream=replace(parent, node=node, key_serde=spec.key_serde, value_serde=spec.value_serde),
        old_values=old_values,
        read=lambda: StoreView(store.materialize(), spec.is_versioned),
        store=store,
        is_versioned=spec.is_versioned,
    )


def always_told() -> OldValues:
    """Return the OldValues of a table whose node always forwards old values."""
    return OldValues(lambda force: True)


def table_of_updates(parent: Stream, node: str, spec: StoreSpec, materialized: Materialized) -> Table:
    """Return the table whose updates are these records.

    It has a store if the user named one, or once a node reads it.
    """
    old_values = OldValues(lambda force: _materialized(table, force=force))
    table = put_in_store(
        parent,
        node,
        spec,
        lambda store: table_source(store.name_if_materialized, old_values),
        old_values=old_values,
        on_demand=materialized.name is None,
    )
    return table


def _materialized(table: Table, *, force: bool) -> bool:
    """Return True if a table has its store, which is made if ``force``."""
    assert table.store is not None
    if force:
        table.store.materialize()
    return table.store.name_if_materialized() is not None


def _with_serdes(stream: Stream, materialized: Materialized | None) -> Stream:
    """Return the stream with the serdes of these options, which may name some without a store."""
    if materialized is None:
        return stream
    return replace(
        stream,
        key_serde=serde_for(materialized.key_serde) or stream.key_serde,
        value_serde=serde_for(materialized.value_serde) or stream.value_serde,
    )


def table_of_stream(
    stream: Stream,
    key_serde: SerdeLike | None,
    value_serde: SerdeLike | None,
    name: str | None,
    materialized: Materialized,
) -> Table:
    """Return the table whose updates are a stream's records."""
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
