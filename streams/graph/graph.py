"""The graph a builder fills: nodes in the order they were made, stores, and who must be co-partitioned."""

from __future__ import annotations

from collections.abc import Iterable
from typing import get_args

from streams.errors import TopologyError
from streams.graph.names import Names, checked
from streams.graph.node import Node, OffsetReset, SinkNode, SourceNode
from streams.state import StoreSpec


class Graph:
    """Nodes and stores of one topology under construction."""

    def __init__(self) -> None:
        self.names = Names()
        self.nodes: dict[str, Node] = {}
        self.stores: dict[str, StoreSpec] = {}
        self.copartitions: list[frozenset[str]] = []
        """Sets of source nodes whose topics must have the same number of partitions."""

    def add(self, node: Node) -> Node:
        """Add a node below its parents, which must be there already."""
        if node.name in self.nodes:
            raise TopologyError(f"a node named {node.name!r} is there already; give one another name=")
        for parent in node.parents:
            above = self.nodes.get(parent)
            if above is None:
                raise TopologyError(f"{node.name} is put below {parent!r}, which is not there")
            if isinstance(above, SinkNode):
                raise TopologyError(f"{node.name} is put below the sink {parent!r}")
            above.children.append(node.name)
        if isinstance(node, SourceNode):
            self._check_topics(node)
        self.nodes[node.name] = node
        return node

    def _check_topics(self, node: SourceNode) -> None:
        if not node.topics:
            raise TopologyError(f"source {node.name} names no topic")
        if node.reset is not None and node.reset not in get_args(OffsetReset):
            raise TopologyError(f"source {node.name}: reset is {node.reset!r}, it may be earliest or latest")
        for other in self.nodes.values():
            if isinstance(other, SourceNode) and (shared := set(other.topics) & set(node.topics)):
                raise TopologyError(
                    f"topic {sorted(shared)[0]!r} is read already, by {other.name}; use that stream twice"
                )

    def connect(self, stores: Iterable[str | StoreSpec]) -> list[str]:
        """Names of a processor's stores; those that come as themselves are added, unless they are there."""
        names = []
        for store in stores:
            if isinstance(store, StoreSpec):
                if self.stores.get(store.name) is not store:
                    self.add_store(store)
                names.append(store.name)
            else:
                names.append(store)
        return names

    def add_store(self, spec: StoreSpec) -> None:
        """Declare a store; names are unique."""
        if spec.name in self.stores:
            raise TopologyError(f"a store named {spec.name!r} is there already")
        self.stores[checked(spec.name)] = spec
