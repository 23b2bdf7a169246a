"""The graph under a topology: nodes and their names, without I/O."""

from __future__ import annotations

from streams.graph.defaults import with_defaults
from streams.graph.graph import Graph, Repartition, StreamJoin
from streams.graph.names import Names, RepartitionNames, checked
from streams.graph.node import (
    Node,
    OffsetReset,
    ProcessorNode,
    SinkNode,
    SourceNode,
    StreamPartitioner,
    TimestampExtractor,
    TopicChooser,
)
from streams.graph.optimized import optimized

__all__ = [
    "Graph",
    "Names",
    "Node",
    "OffsetReset",
    "ProcessorNode",
    "Repartition",
    "RepartitionNames",
    "SinkNode",
    "SourceNode",
    "StreamJoin",
    "StreamPartitioner",
    "TimestampExtractor",
    "TopicChooser",
    "checked",
    "optimized",
    "with_defaults",
]
