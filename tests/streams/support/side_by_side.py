"""Several topologies as one, so that one application runs them all; they share no node, store or topic.

All names, topics too, get the topology's own in front: the topic `out` of `count` is `count.out`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TypeVar

from streams import Topology
from streams.graph import Graph, Node, ProcessorNode, SinkNode, SourceNode
from streams.processors.record import Process
from streams.processors.wiring import Operator, Wiring
from streams.state import CachedStore

Value = TypeVar("Value")


def side_by_side(topologies: Mapping[str, Topology]) -> Topology:
    """Return one topology of all these."""
    graph = Graph()
    for name, topology in topologies.items():
        prefix = f"{name}."
        for spec in topology.stores.values():
            graph.add_store(dataclasses.replace(spec, name=prefix + spec.name))
        for node in topology.nodes.values():
            graph.add(_renamed(node, prefix))
        for sources in topology.copartitions:
            graph.copartitions.append(frozenset(prefix + source for source in sources))
    return Topology(graph)


def _renamed(node: Node, prefix: str) -> Node:
    parents = tuple(prefix + parent for parent in node.parents)
    reads_of = tuple(prefix + each for each in node.reads_of)
    name = prefix + node.name
    renamed = dataclasses.replace(node, name=name, parents=parents, reads_of=reads_of, children=[])
    match renamed:
        case SourceNode():
            renamed.topics = tuple(prefix + topic for topic in renamed.topics)
        case SinkNode():
            assert renamed.topic is not None, "a topic that is chosen per record cannot be renamed"
            renamed.topic = prefix + renamed.topic
        case ProcessorNode():
            renamed.stores = [prefix + store for store in renamed.stores]
            renamed.operator = _by_own_names(renamed.operator, prefix)
    return renamed


def _by_own_names(operator: Operator, prefix: str) -> Operator:
    """Return the operator; it knows stores and children by their original names."""

    def build(wiring: Wiring) -> Process:
        children = {name.removeprefix(prefix): child for name, child in wiring.children.items()}
        fields = {each.name: getattr(wiring, each.name) for each in dataclasses.fields(wiring)}
        return operator(_Prefixed(**{**fields, "children": children}, prefix=prefix))

    return build


@dataclasses.dataclass(slots=True)
class _Prefixed(Wiring):
    prefix: str = ""

    def store(self, name: str) -> CachedStore:
        return Wiring.store(self, self.prefix + name)
