"""A finished topology: what `StreamsBuilder.build` returns and every runner takes."""

from __future__ import annotations

from collections.abc import Mapping

from streams.errors import TopologyError
from streams.graph import Graph, Node, ProcessorNode, SinkNode, SourceNode
from streams.state import StoreSpec
from streams.topology.describe import describe
from streams.topology.subtopology import Subtopology, subtopologies_of


class Topology:
    """Nodes, stores and sub-topologies; nothing in it changes any more."""

    def __init__(self, graph: Graph) -> None:
        self.nodes: Mapping[str, Node] = graph.in_build_order()
        self.copartitions: tuple[frozenset[str], ...] = tuple(graph.copartitions)
        self.subtopologies: tuple[Subtopology, ...] = subtopologies_of(self.nodes)
        used = {name for subtopology in self.subtopologies for name in subtopology.stores}
        self.stores: Mapping[str, StoreSpec] = {name: s for name, s in graph.stores.items() if name in used}
        self._check(graph)

    def _check(self, graph: Graph) -> None:
        if not self.with_tasks:
            raise TopologyError("the topology reads no topic: begin with builder.stream() or builder.table()")
        for node in self.nodes.values():
            for store in node.stores if isinstance(node, ProcessorNode) else ():
                if store not in graph.stores:
                    raise TopologyError(f"{node.name} names a store {store!r} that was not added")

    @property
    def with_tasks(self) -> list[Subtopology]:
        """The sub-topologies that tasks run: all but those of global tables."""
        return [subtopology for subtopology in self.subtopologies if not subtopology.is_global]

    @property
    def external_topics(self) -> list[str]:
        """Source topics of tasks that must exist, sorted."""
        external = (source for source in self._sources() if not source.internal and not source.is_global)
        return sorted({topic for source in external for topic in source.topics})

    @property
    def global_stores(self) -> dict[str, SourceNode]:
        """The stores of global tables, and the nodes that read their topics."""
        return {
            store: subtopology.sources[0]
            for subtopology in self.subtopologies
            if subtopology.is_global
            for store in subtopology.stores
        }

    @property
    def repartition_topics(self) -> list[str]:
        """Source topics the application makes itself, without the application id, sorted."""
        return sorted({topic for source in self._sources() if source.internal for topic in source.topics})

    @property
    def sink_topics(self) -> list[str]:
        """Topics written that are not the application's own, sorted."""
        sinks = (node for node in self.nodes.values() if isinstance(node, SinkNode))
        return sorted({sink.topic for sink in sinks if not sink.internal})

    def source_of(self, topic: str) -> SourceNode:
        """The node that reads ``topic``; KeyError if none does."""
        for source in self._sources():
            if topic in source.topics:
                return source
        raise KeyError(topic)

    def describe(self) -> str:
        """The topology as text, as Kafka's ``Topology.describe()`` prints it."""
        return describe(self.subtopologies)

    def _sources(self) -> list[SourceNode]:
        return [node for node in self.nodes.values() if isinstance(node, SourceNode)]
