"""The join of two tables by their key: its three nodes, and the table they make, under Kafka's names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from streams.dsl.options import Materialized
from streams.dsl.table import StoreOnDemand, Table
from streams.errors import TopologyError
from streams.graph import ProcessorNode
from streams.processors.joins.joiner import with_key
from streams.processors.joins.table_join import JoinedView, join_updates, keep_joined
from streams.processors.stateless.stateless import pass_through
from streams.processors.tables.table import OldValues, StoreView
from streams.processors.tables.versioned import latest_only
from streams.serdes import serde_for


def join_tables(
    left: Table,
    right: Table,
    joiner: Callable[..., Any],
    name: str | None,
    materialized: Materialized | None,
    *,
    keep_left: bool,
    keep_right: bool,
) -> Table:
    """Add a join's nodes; ``keep_left``, ``keep_right``: keys of that side are there without the other's."""
    builder = left.stream.builder
    if builder is not right.stream.builder:
        raise TopologyError("tables that are joined come of one StreamsBuilder")
    joined = with_key(joiner, takes_key=False)
    store_name = None if materialized is None else materialized.name or builder.names.store("KTABLE-MERGE-")
    merge = builder.names.node("KTABLE-MERGE-", name)
    this = builder.names.node("KTABLE-JOINTHIS-", name, "-join-this")
    other = builder.names.node("KTABLE-JOINOTHER-", name, "-join-other")
    if keep_left:
        left.old_values.ask(force=True)
    if keep_right:
        right.old_values.ask(force=True)

    def ask_both(force: bool) -> bool:
        return left.old_values.ask(force=True) and right.old_values.ask(force=True)

    old_values = OldValues(ask_both)
    views = left.read(), right.read()
    from_left = join_updates(
        views[1], joined, old_values, needs_own=not keep_right, needs_other=not keep_left
    )
    reverse = lambda key, own, others: joined(key, others, own)  # noqa: E731
    from_right = join_updates(
        views[0], reverse, old_values, needs_own=not keep_left, needs_other=not keep_right
    )
    if left.is_versioned:
        from_left = latest_only(from_left)
    if right.is_versioned:
        from_right = latest_only(from_right)
    builder.add_processor(this, (left.stream.node,), from_left, views[1].stores)
    builder.add_processor(other, (right.stream.node,), from_right, views[0].stores)
    for side in (this, other):
        builder.graph.nodes[side].reads_of = (left.stream.node, right.stream.node)
    sources = left.stream.sources | right.stream.sources
    builder.graph.copartitions.append(sources)
    stream = replace(left.stream, node=merge, sources=sources, value_serde=None)
    if materialized is None or store_name is None:
        builder.add_processor(merge, (this, other), pass_through())
        view = JoinedView(*views, joined, needs_left=not keep_right, needs_right=not keep_left)
        return Table(stream=stream, old_values=old_values, read=lambda: view)
    spec = builder.store_spec(
        store_name,
        materialized,
        key_serde=left.stream.key_serde,
        value_serde=serde_for(materialized.value_serde),
        node=merge,
    )
    builder.add_processor(merge, (this, other), keep_joined(spec.name, old_values))
    node = builder.graph.nodes[merge]
    assert isinstance(node, ProcessorNode)
    store = StoreOnDemand(builder.graph, spec)
    store.node = node
    store.materialize()
    return Table(
        stream=replace(stream, key_serde=spec.key_serde, value_serde=spec.value_serde),
        old_values=old_values,
        read=lambda: StoreView(spec.name, spec.is_versioned),
        store=store,
        is_versioned=spec.is_versioned,
    )
