"""A graph by the rules of ``topology.optimization``, as Kafka's StreamsBuilder.build(Properties) rewrites it.

What the user said stays as it is: the rules change a copy, so that a builder can be built again.
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
    """The graph as these rules make it; itself if there are none."""
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
    """Let stores of tables be restored from the topics that the tables are read from.

    Not versioned ones: their changelogs have a key for each version, and are not compacted to the last.
    """
    for store, topic in graph.table_topics.items():
        if (spec := graph.stores.get(store)) is not None and not spec.is_versioned:
            graph.stores[store] = replace(spec, logged=False, source_topic=topic)


def join_with_single_stores(graph: Graph) -> None:
    """Let a stream that is joined with itself be kept once: the right side's nodes go."""
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
