"""The join of two streams within windows: its nodes, stores and repartition topics, under Kafka's names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from streams.dsl.arity import joiner_takes_key
from streams.dsl.internal_builder import InternalStreamsBuilder
from streams.dsl.options import StreamJoined, keeping
from streams.dsl.stream import Stream
from streams.errors import TopologyError
from streams.graph import Names, StreamJoin
from streams.processors.joins.self_join import join_self
from streams.processors.joins.stream_join import JoinSide, join_inner, join_outer, keep_records
from streams.processors.stateless import stateless
from streams.processors.windowing.join_windows import JoinWindows
from streams.serdes import Serde
from streams.state import StoreSpec
from streams.state.outer_join import UnmatchedKeys, UnmatchedValues


@dataclass(frozen=True, slots=True, kw_only=True)
class _Serdes:
    key: Serde[Any]
    left: Serde[Any]
    right: Serde[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Names:
    """Names of a join's nodes, and of its stores."""

    keep_left: str
    keep_right: str
    join_left: str
    join_right: str
    merge: str
    left_store: str
    right_store: str
    unmatched_store: str

    @classmethod
    def of(cls, names: Names, options: StreamJoined, *, left: bool, right: bool) -> _Names:
        """Return the names of a join. Unmatched records of a side pass if ``left`` or ``right`` is True."""
        this, other = ("OUTERTHIS" if right else "JOINTHIS"), ("OUTEROTHER" if left else "JOINOTHER")
        this_suffix = "-outer-this-join" if right else "-this-join"
        other_suffix = "-outer-other-join" if left else "-other-join"
        shared_suffix = "-outer-shared-join" if right else "-left-shared-join"
        keep_left = names.node("KSTREAM-WINDOWED-", options.name, "-this-windowed")
        keep_right = names.node("KSTREAM-WINDOWED-", options.name, "-other-windowed")
        # The stores are named by these even where the nodes have names of their own.
        generated_this, generated_other = names.node(f"KSTREAM-{this}-"), names.node(f"KSTREAM-{other}-")
        generated_shared = generated_this.replace(this, "OUTERSHARED")
        node, store = options.name, options.store
        return cls(
            keep_left=keep_left,
            keep_right=keep_right,
            join_left=generated_this if node is None else node + this_suffix,
            join_right=generated_other if node is None else node + other_suffix,
            merge=names.node("KSTREAM-MERGE-", node, "-merge"),
            left_store=f"{generated_this if store is None else store + this_suffix}-store",
            right_store=f"{generated_other if store is None else store + other_suffix}-store",
            unmatched_store=f"{generated_shared if store is None else store + shared_suffix}-store",
        )


def join_streams(
    left: Stream,
    right: Stream,
    joiner: Callable[..., Any],
    windows: JoinWindows,
    options: StreamJoined,
    *,
    keep_left: bool,
    keep_right: bool,
) -> Stream:
    """Add a join's nodes; ``keep_left``, ``keep_right``: records of that side go on without the other's."""
    if left.builder is not right.builder:
        raise TopologyError("streams that are joined come of one StreamsBuilder")
    serdes = _serdes(left, right, options)
    left, right = _copartitioned(left, right, serdes, options.name)
    builder = left.builder
    names = _Names.of(builder.names, options, left=keep_left, right=keep_right)
    unmatched = names.unmatched_store if keep_left or keep_right else None
    for spec in _stores(names, serdes, windows, options, unmatched=unmatched):
        builder.graph.add_store(spec)
    this = JoinSide(
        is_left=True,
        windows=windows,
        joiner=joiner,
        with_key=joiner_takes_key(joiner),
        other_store=names.right_store,
        outer=keep_left,
        unmatched_store=unmatched,
    )
    other = replace(this, is_left=False, other_store=names.left_store, outer=keep_right)
    _add_nodes(builder, names, left.node, right.node, this, other)
    sources = left.sources | right.sources
    builder.graph.copartitions.append(sources)
    return Stream(builder=builder, node=names.merge, sources=sources, key_serde=serdes.key)


def _add_nodes(
    builder: InternalStreamsBuilder, names: _Names, left: str, right: str, this: JoinSide, other: JoinSide
) -> None:
    """Add the join's nodes in Kafka's order, which is that of the numbers in their names."""
    is_outer = this.unmatched_store is not None
    for parent, node, store in (
        (left, names.keep_left, names.left_store),
        (right, names.keep_right, names.right_store),
    ):
        builder.add_processor(node, (parent,), keep_records(store), (store,), takes_null_keys=is_outer)
    for parent, node, side in (
        (names.keep_left, names.join_left, this),
        (names.keep_right, names.join_right, other),
    ):
        operator = join_outer(side) if is_outer else join_inner(side)
        builder.add_processor(node, (parent,), operator, side.stores)
    builder.add_processor(names.merge, (names.join_left, names.join_right), stateless.pass_through())
    for node in (names.join_left, names.join_right, names.merge):
        builder.graph.nodes[node].reads_of = (left, right)
    builder.graph.stream_joins.append(
        StreamJoin(
            keep_left=names.keep_left,
            keep_right=names.keep_right,
            join_left=names.join_left,
            join_right=names.join_right,
            merge=names.merge,
            left_store=names.left_store,
            self_join=join_self(this, names.left_store),
        )
    )


def _serdes(left: Stream, right: Stream, options: StreamJoined) -> _Serdes:
    builder = left.builder
    return _Serdes(
        key=builder.key_serde(left.node, options.key_serde, left.key_serde, right.key_serde),
        left=builder.value_serde(left.node, options.value_serde, left.value_serde),
        right=builder.value_serde(right.node, options.other_value_serde, right.value_serde),
    )


def _copartitioned(left: Stream, right: Stream, serdes: _Serdes, name: str | None) -> tuple[Stream, Stream]:
    """Return both streams, each behind a repartition topic if its key may have changed."""
    if name is None:
        left_name = right_name = None
    else:
        left_name, right_name = f"{name}-left", f"{name}-right"
    return (
        left.repartitioned_for_join(left_name, serdes.key, serdes.left),
        right.repartitioned_for_join(right_name, serdes.key, serdes.right),
    )


def _stores(
    names: _Names, serdes: _Serdes, windows: JoinWindows, options: StreamJoined, *, unmatched: str | None
) -> list[StoreSpec]:
    as_told: dict[str, Any] = {
        "cached": False,
        **keeping(options.persistent),
        "logged": options.logging,
        "changelog_config": options.changelog_config,
    }
    left = StoreSpec(
        name=names.left_store,
        kind="join_window",
        key_serde=serdes.key,
        value_serde=serdes.left,
        window_size_ms=windows.size_ms,
        retention_ms=windows.size_ms + windows.grace_ms,
        **as_told,
    )
    stores = [left, replace(left, name=names.right_store, value_serde=serdes.right)]
    if unmatched is not None:
        values = UnmatchedValues(serdes.left, serdes.right)
        keys = UnmatchedKeys(serdes.key)
        stores.append(
            StoreSpec(name=unmatched, kind="outer_join", key_serde=keys, value_serde=values, **as_told)
        )
    return stores
