"""A topology as plain data for programs: the content of `Topology.describe` and more, fit for JSON.

{"sub_topologies": [{"id": 0, "nodes": [{"name": ..., "type": "source", "topics": [...], "successors": [...],
 "predecessors": [...]}, {"type": "processor", "stores": [...], ...}, {"type": "sink", "topic": ..., ...}]}],
 "stores": [{"name": ..., "kind": ..., "persistent": ..., "logged": ..., "changelog": ...}],
 "repartition_topics": [{"name": ..., "partitions": ...}]}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from streams.graph import Node, ProcessorNode, SinkNode, SourceNode
from streams.state import StoreSpec
from streams.topology.describe import chooser_of
from streams.topology.subtopology import Subtopology

Outline = dict[str, Any]


def outline(subtopologies: Iterable[Subtopology], stores: Mapping[str, StoreSpec]) -> Outline:
    """Return the sub-topologies, their stores and repartition topics as plain data."""
    parts = list(subtopologies)
    return {
        "sub_topologies": [{"id": each.id, "nodes": [_node(node) for node in each.nodes]} for each in parts],
        "stores": [_store(spec) for _, spec in sorted(stores.items())],
        "repartition_topics": [
            {"name": topic, "partitions": source.partitions}
            for part in parts
            for source in part.sources
            if source.internal
            for topic in source.topics
        ],
    }


def _node(node: Node) -> Outline:
    outlined: Outline = {"name": node.name}
    if isinstance(node, SourceNode):
        outlined |= {"type": "source", "topics": list(node.topics)}
        if node.pattern is not None:
            outlined["pattern"] = node.pattern.pattern
    elif isinstance(node, SinkNode):
        outlined |= {"type": "sink", "topic": node.topic}
        if node.choose_topic is not None:
            outlined["topic_chosen_by"] = chooser_of(node)
    elif isinstance(node, ProcessorNode):
        outlined |= {"type": "processor", "stores": list(node.stores)}
    links = {
        "successors": list(dict.fromkeys(node.children)),
        "predecessors": list(dict.fromkeys(node.parents)),
    }
    return outlined | links


def _store(spec: StoreSpec) -> Outline:
    return {
        "name": spec.name,
        "kind": spec.kind,
        "persistent": spec.persistent,
        "logged": spec.logged,
        "changelog": spec.changelog if spec.logged else None,
    }
