"""Defaults for a graph from settings, where the program sets nothing: timestamp extractor and store backend.

Default serdes are not set here: the builder needs them when an operator is added.
"""

from __future__ import annotations

from dataclasses import replace

from streams.graph.graph import Graph
from streams.graph.node import SourceNode, TimestampExtractor


def with_defaults(graph: Graph, *, timestamp_extractor: TimestampExtractor | None, in_memory: bool) -> Graph:
    """Return a copy of the graph with defaults; the graph itself if there are none.

    ``timestamp_extractor`` is set for inputs without one. As in Kafka, repartition topics, whose records have
    event times already, and global tables are excluded. ``in_memory``: keep stores in memory, unless the
    program chose a backend.
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
