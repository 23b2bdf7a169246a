"""The rules of ``topology.optimization``, which rewrite a graph.

They do what Kafka's StreamsBuilder.build(Properties) does. The rules change a copy of the user's graph, so
that the builder can be built again.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from streams.graph.graph import Graph
from streams.graph.merged_topics import merge_repartition_topics
from streams.graph.node import ProcessorNode
from streams.optimization import (
    MERGE_REPARTITION_TOPICS,
    REUSE_KTABLE_SOURCE_TOPICS,
    SINGLE_STORE_SELF_JOIN,
)


def optimized(graph: Graph, rules: Collection[str]) -> Graph:
    """Return a copy of the graph rewritten by these rules; the graph itself if there are none."""
    if not rules:
        return graph
    graph = graph.copy()
    if REUSE_KTABLE_SOURCE_TOPICS in rules:
        reuse_source_topics(graph)
    if MERGE_REPARTITION_TOPICS in rules:
        merge_repartition_topics(graph)
    if SINGLE_STORE_SELF_JOIN in rules:
        join_with_single_stores(graph)
    graph.relink()
    return graph


def reuse_source_topics(graph: Graph) -> None:
    """Have stores of tables restored from the tables' own topics, instead of changelogs.

    Versioned stores keep theirs: it has a key for each version, so compaction does not leave only the last.
    """
    for store, topic in graph.table_topics.items():
        if (spec := graph.stores.get(store)) is not None and not spec.is_versioned:
            graph.stores[store] = replace(spec, logged=False, source_topic=topic)


def join_with_single_stores(graph: Graph) -> None:
    """Have a stream that is joined with itself stored once: remove the right side's nodes."""
    for join in graph.stream_joins:
        keep_left, keep_right = graph.nodes[join.keep_left], graph.nodes[join.keep_right]
        if keep_left.parents != keep_right.parents:
            continue
        for name in (join.join_left, join.join_right, join.keep_right):
            del graph.nodes[name]
        merge = graph.nodes[join.merge]
        assert isinstance(merge, ProcessorNode)
        merge.operator, merge.stores = join.self_join, [join.left_store]
        merge.parents, merge.reads_of = (keep_left.name,), ()
