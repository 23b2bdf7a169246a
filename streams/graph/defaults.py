"""A graph with what settings say where the program says nothing: how times are read, where stores are kept.

Default serdes are not among it: the builder needs them when an operator is added.
"""

from __future__ import annotations

from dataclasses import replace

from streams.graph.graph import Graph
from streams.graph.node import SourceNode, TimestampExtractor


def with_defaults(graph: Graph, *, timestamp_extractor: TimestampExtractor | None, in_memory: bool) -> Graph:
    """A copy of the graph; itself if there is nothing to be set.

    ``timestamp_extractor`` is for inputs without one; as in Kafka not for repartition topics, whose records
    have times already, nor for global tables. ``in_memory``: stores that the program does not keep elsewhere.
    """
    if timestamp_extractor is None and not in_memory:
        return graph
    graph = graph.copy()
    for node in graph.nodes.values():
        if isinstance(node, SourceNode) and not (node.internal or node.is_global):
            node.timestamp_extractor = node.timestamp_extractor or timestamp_extractor
    if in_memory:
        graph.stores = {
            name: replace(spec, persistent=False) if spec.by_default else spec
            for name, spec in graph.stores.items()
        }
    return graph
