"""Sub-topologies: the parts of a graph that edges or shared stores connect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from streams.graph import Node, ProcessorNode, SinkNode, SourceNode


@dataclass(frozen=True, slots=True)
class Subtopology:
    """A connected part of a graph, with one task per partition. Nodes are in build order."""

    id: int
    nodes: tuple[Node, ...]

    @property
    def sources(self) -> list[SourceNode]:
        """The nodes that read topics."""
        return [node for node in self.nodes if isinstance(node, SourceNode)]

    @property
    def is_global(self) -> bool:
        """True if the part belongs to a global table, so that no tasks run it."""
        return any(source.is_global for source in self.sources)

    @property
    def sinks(self) -> list[SinkNode]:
        """The nodes that write topics."""
        return [node for node in self.nodes if isinstance(node, SinkNode)]

    @property
    def topics(self) -> list[str]:
        """The source topics, by the topology's names."""
        return [topic for source in self.sources for topic in source.topics]

    @property
    def stores(self) -> list[str]:
        """The names of the stores, in the nodes' order."""
        names = [name for node in self.nodes if isinstance(node, ProcessorNode) for name in node.stores]
        return list(dict.fromkeys(names))


def subtopologies_of(nodes: Mapping[str, Node]) -> tuple[Subtopology, ...]:
    """Return the parts, numbered as Kafka does: by their sources, in build order."""
    root = _roots(nodes)
    sources = [name for name, node in nodes.items() if isinstance(node, SourceNode)]
    order = list(dict.fromkeys(root[name] for name in sources))
    return tuple(
        Subtopology(number, tuple(node for node in nodes.values() if root[node.name] == each))
        for number, each in enumerate(order)
    )


def _roots(nodes: Mapping[str, Node]) -> dict[str, str]:
    """Return each node's representative by union-find: nodes of one part have the same."""
    parent = {name: name for name in nodes}

    def find(name: str) -> str:
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    store_user: dict[str, str] = {}
    for node in nodes.values():
        for above in node.parents:
            parent[find(node.name)] = find(above)
        if isinstance(node, ProcessorNode):
            for store in node.stores:
                user = store_user.setdefault(store, node.name)
                parent[find(node.name)] = find(user)
    return {name: find(name) for name in nodes}
