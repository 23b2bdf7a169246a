"""The as-of join of two streams: its nodes, stores and repartition topics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streams.dsl.arity import joiner_takes_key
from streams.dsl.options import StreamJoined, keeping
from streams.dsl.stream import Stream
from streams.dsl.windowing import check_idle_timeout
from streams.errors import TopologyError
from streams.processors.joins.asof import AsOf
from streams.processors.joins.asof_join import AsOfJoin, join_left, join_right
from streams.processors.joins.joiner import with_key
from streams.processors.stateless import stateless
from streams.processors.windowing.windows import Duration, milliseconds
from streams.serdes import Serde
from streams.serdes.buffered import BufferedSerde
from streams.state import StoreSpec
from streams.state.waiting import WaitingKeys


def join_streams_as_of(
    left: Stream,
    right: Stream,
    joiner: Callable[..., Any],
    as_of: AsOf,
    options: StreamJoined,
    idle_timeout: Duration | None,
    *,
    outer: bool,
) -> Stream:
    """Add a join's nodes; ``outer``: records that meet none are joined with None."""
    if left.builder is not right.builder:
        raise TopologyError("streams that are joined come of one StreamsBuilder")
    if idle_timeout is not None:
        check_idle_timeout(idle_timeout)
    builder, names, name, store = left.builder, left.builder.names, options.name, options.store
    key_serde = builder.key_serde(left.node, options.key_serde, left.key_serde, right.key_serde)
    left_serde = builder.value_serde(left.node, options.value_serde, left.value_serde)
    right_serde = builder.value_serde(right.node, options.other_value_serde, right.value_serde)
    left = left.repartitioned_for_join(name and f"{name}-left", key_serde, left_serde)
    right = right.repartitioned_for_join(name and f"{name}-right", key_serde, right_serde)
    # The stores are named by these even where the nodes have names of their own.
    this, other = names.node("KSTREAM-ASOFTHIS-"), names.node("KSTREAM-ASOFOTHER-")
    waiting_store = f"{this if store is None else store + '-asof-this-join'}-store"
    join = AsOfJoin(
        as_of=as_of,
        joiner=with_key(joiner, takes_key=joiner_takes_key(joiner)),
        value_serde=left_serde,
        right_store=f"{other if store is None else store + '-asof-other-join'}-store",
        waiting_store=waiting_store if as_of.waits else None,
        outer=outer,
        idle_ms=None if idle_timeout is None else milliseconds(idle_timeout),
    )
    for spec in _stores(join, key_serde, right_serde, options):
        builder.graph.add_store(spec)
    left_node = this if name is None else f"{name}-asof-this-join"
    right_node = other if name is None else f"{name}-asof-other-join"
    builder.add_processor(left_node, (left.node,), join_left(join), join.stores, takes_null_keys=outer)
    builder.add_processor(right_node, (right.node,), join_right(join), join.stores)
    merged = names.node("KSTREAM-MERGE-", name, "-merge")
    builder.add_processor(merged, (left_node, right_node), stateless.pass_through())
    sources = left.sources | right.sources
    builder.graph.copartitions.append(sources)
    return Stream(builder=builder, node=merged, sources=sources, key_serde=key_serde)


def _stores(
    join: AsOfJoin, key_serde: Serde[Any], right_serde: Serde[Any], options: StreamJoined
) -> list[StoreSpec]:
    as_told: dict[str, Any] = {
        "cached": False,
        **keeping(options.persistent),
        "logged": options.logging,
        "changelog_config": options.changelog_config,
    }
    stores = [
        StoreSpec(
            name=join.right_store,
            kind="join_window",
            key_serde=key_serde,
            value_serde=right_serde,
            retention_ms=join.as_of.retention_ms,
            **as_told,
        )
    ]
    if join.waiting_store is not None:
        keys, values = WaitingKeys(key_serde), BufferedSerde()
        stores.append(
            StoreSpec(name=join.waiting_store, kind="waiting", key_serde=keys, value_serde=values, **as_told)
        )
    return stores
