"""Finished topologies: their sub-topologies, description, partition counts and operators; without I/O."""

from __future__ import annotations

from streams.topology.failures import Handlers
from streams.topology.partitions import partition_counts
from streams.topology.patterns import (
    Matched,
    match_topics,
    own_topology,
    pattern_sources,
    read_topics,
)
from streams.topology.program import Program, source_nodes, wire
from streams.topology.sink_output import Row, Rows, Written, WrittenInOrder
from streams.topology.subtopology import Subtopology
from streams.topology.topology import Topology, add_global_store

__all__ = [
    "Handlers",
    "Matched",
    "Program",
    "Row",
    "Rows",
    "Subtopology",
    "Topology",
    "Written",
    "WrittenInOrder",
    "add_global_store",
    "match_topics",
    "own_topology",
    "partition_counts",
    "pattern_sources",
    "read_topics",
    "source_nodes",
    "wire",
]
