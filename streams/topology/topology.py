"""`Topology`: nodes, stores and sub-topologies; `StreamsBuilder.build` returns one, and runners take it.

It can also be built node by node, as with Kafka's class of that name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from streams.errors import TopologyError
from streams.graph import (
    Graph,
    Node,
    OffsetReset,
    ProcessorNode,
    SinkNode,
    SourceNode,
    StreamPartitioner,
    TimestampExtractor,
    TopicChooser,
    with_defaults,
)
from streams.processors.custom import Processor, run_processor
from streams.serdes import Serde, SerdeLike, serde_for
from streams.state import StoreSpec
from streams.topology.describe import describe
from streams.topology.generated_names import GeneratedNames
from streams.topology.mermaid import mermaid
from streams.topology.outline import Outline, outline
from streams.topology.subtopology import Subtopology, subtopologies_of
from streams.topology.svg import svg


@dataclass(frozen=True, slots=True)
class _Parts:
    nodes: Mapping[str, Node]
    copartitions: tuple[frozenset[str], ...]
    subtopologies: tuple[Subtopology, ...]
    stores: Mapping[str, StoreSpec]
    generated_names: GeneratedNames


class Topology:
    """Nodes, stores and sub-topologies. Once it is described or run, nothing can be added any more.

    ``key_serde`` and ``value_serde`` are the defaults of sources and sinks added without serdes.
    """

    def __init__(
        self,
        graph: Graph | None = None,
        *,
        key_serde: SerdeLike | None = None,
        value_serde: SerdeLike | None = None,
        optimization: frozenset[str] = frozenset(),
        has_default_serdes: bool = False,
    ) -> None:
        self.optimization = optimization
        """The rules of ``topology.optimization`` by which the topology was built."""
        self.has_default_serdes = has_default_serdes
        """True if the builder knew ``default.key.serde`` and ``default.value.serde``."""
        self._graph = Graph() if graph is None else graph
        self._key_serde = serde_for(key_serde)
        self._value_serde = serde_for(value_serde)
        self._parts: _Parts | None = None

    # -- node by node

    def add_source(
        self,
        name: str,
        topics: str | Sequence[str] | re.Pattern[str],
        *,
        key_serde: SerdeLike | None = None,
        value_serde: SerdeLike | None = None,
        timestamp_extractor: TimestampExtractor | None = None,
        reset: OffsetReset | None = None,
    ) -> Self:
        """Add a node that reads topics: one, several, or all whose full names match a compiled pattern."""
        pattern, names = (topics, ()) if isinstance(topics, re.Pattern) else (None, topics)
        node = SourceNode(
            name=name,
            topics=(names,) if isinstance(names, str) else tuple(names),
            pattern=pattern,
            key_serde=_serde_or_default(name, "key", key_serde, self._key_serde),
            value_serde=_serde_or_default(name, "value", value_serde, self._value_serde),
            timestamp_extractor=timestamp_extractor,
            reset=reset,
        )
        return self._add(node)

    def add_processor(
        self,
        name: str,
        supplier: Callable[[], Processor[Any, Any]],
        parents: str | Sequence[str],
        *,
        stores: Collection[str | StoreSpec] = (),
    ) -> Self:
        """Add a node that runs a processor; ``supplier()`` makes one per task.

        A `StoreSpec` in ``stores`` is added to the topology.
        """
        if not callable(supplier):
            raise TopologyError(
                f"{name}: a processor is made per task: give its class or a function, not {supplier!r}"
            )
        names = self._graph.connect(stores)
        operator = run_processor(supplier)
        return self._add(ProcessorNode(name=name, parents=_parents(parents), operator=operator, stores=names))

    def add_sink(
        self,
        name: str,
        topic: str | TopicChooser,
        parents: str | Sequence[str],
        *,
        key_serde: SerdeLike | None = None,
        value_serde: SerdeLike | None = None,
        partitioner: StreamPartitioner | None = None,
    ) -> Self:
        """Add a node that writes a topic; ``topic(key, value, context)`` may choose one for each record."""
        node = SinkNode(
            name=name,
            parents=_parents(parents),
            topic=topic if isinstance(topic, str) else None,
            choose_topic=None if isinstance(topic, str) else topic,
            key_serde=_serde_or_default(name, "key", key_serde, self._key_serde),
            value_serde=_serde_or_default(name, "value", value_serde, self._value_serde),
            partitioner=partitioner,
        )
        return self._add(node)

    def add_global_store(
        self,
        spec: StoreSpec,
        source: str,
        topic: str,
        processor: str,
        supplier: Callable[[], Processor[Any, Any]],
        *,
        key_serde: SerdeLike | None = None,
        value_serde: SerdeLike | None = None,
        timestamp_extractor: TimestampExtractor | None = None,
    ) -> Self:
        """Add a store of which every instance has a full copy, filled by a processor from a topic's records.

        Any processor may read the store, without naming it in ``stores=``.
        """
        self._check_open()
        node = SourceNode(
            name=source,
            topics=(topic,),
            key_serde=_serde_or_default(source, "key", key_serde, self._key_serde),
            value_serde=_serde_or_default(source, "value", value_serde, self._value_serde),
            timestamp_extractor=timestamp_extractor,
            is_global=True,
            by_processor=True,
        )
        add_global_store(self._graph, spec, node, processor, supplier)
        return self

    def add_state_store(self, spec: StoreSpec, processors: str | Sequence[str] = ()) -> Self:
        """Add a store, and give these processors access to it."""
        self._check_open()
        self._graph.add_store(spec)
        for processor in _parents(processors):
            self.connect_processor_and_state_stores(processor, spec.name)
        return self

    def connect_processor_and_state_stores(self, processor: str, *stores: str) -> Self:
        """Give a processor access to stores. Processors that share a store are in one sub-topology."""
        self._check_open()
        node = self._graph.nodes.get(processor)
        if not isinstance(node, ProcessorNode):
            raise TopologyError(f"there is no processor {processor!r} to be given stores {stores}")
        node.stores += [store for store in stores if store not in node.stores]
        return self

    def _add(self, node: Node) -> Self:
        self._check_open()
        self._graph.add(node)
        return self

    def _check_open(self) -> None:
        if self._parts is not None:
            raise TopologyError("the topology was looked at already: add to it before it is described or run")

    # -- as a whole

    @property
    def nodes(self) -> Mapping[str, Node]:
        """All nodes by name."""
        return self.finished()._all.nodes

    @property
    def copartitions(self) -> tuple[frozenset[str], ...]:
        """Sets of source nodes whose topics must have the same number of partitions."""
        return self.finished()._all.copartitions

    @property
    def subtopologies(self) -> tuple[Subtopology, ...]:
        """The subtopologies: nodes are in the same one if an edge or a shared store connects them."""
        return self.finished()._all.subtopologies

    @property
    def stores(self) -> Mapping[str, StoreSpec]:
        """The stores that are used, by name."""
        return self.finished()._all.stores

    @property
    def generated_names(self) -> GeneratedNames:
        """The stores and internal topics with generated names."""
        return self.finished()._all.generated_names

    def finished(self) -> Self:
        """Check the topology and return it; nothing can be added any more.

        Raises TopologyError if the topology cannot work.
        """
        if self._parts is None:
            graph = self._graph
            nodes = graph.in_build_order()
            parts = subtopologies_of(nodes)
            used = {name for subtopology in parts for name in subtopology.stores}
            stores = {name: spec for name, spec in graph.stores.items() if name in used}
            _check(graph, parts)
            internal = [
                t for n in nodes.values() if isinstance(n, SourceNode) and n.internal for t in n.topics
            ]
            generated = GeneratedNames.of(stores.values(), internal, graph.names.generated)
            self._parts = _Parts(nodes, tuple(graph.copartitions), parts, stores, generated)
        return self

    def copy(self) -> Topology:
        """Return a finished copy of the topology, with nodes of its own."""
        return Topology(
            self._graph.copy(), optimization=self.optimization, has_default_serdes=self.has_default_serdes
        ).finished()

    def with_defaults(self, *, timestamp_extractor: TimestampExtractor | None, in_memory: bool) -> Topology:
        """Return a finished topology with defaults where it has no settings of its own.

        See `graph.with_defaults`.
        Raises TopologyError if the topology cannot work.
        """
        graph = with_defaults(self._graph, timestamp_extractor=timestamp_extractor, in_memory=in_memory)
        if graph is self._graph:
            return self.finished()
        return Topology(
            graph, optimization=self.optimization, has_default_serdes=self.has_default_serdes
        ).finished()

    @property
    def _all(self) -> _Parts:
        assert self._parts is not None, "finished() is called first"
        return self._parts

    @property
    def with_tasks(self) -> list[Subtopology]:
        """The sub-topologies that tasks run: all but those of global tables."""
        return [subtopology for subtopology in self.subtopologies if not subtopology.is_global]

    @property
    def external_topics(self) -> list[str]:
        """Source topics of tasks that are not internal, sorted; of patterns, the topics known to match."""
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
        """Source topics that the application creates, without the application id, sorted."""
        return sorted({topic for source in self._sources() if source.internal for topic in source.topics})

    @property
    def sink_topics(self) -> list[str]:
        """Topics of sinks that are not internal, sorted; without those chosen for each record."""
        sinks = (node for node in self.nodes.values() if isinstance(node, SinkNode))
        return sorted({sink.topic for sink in sinks if not sink.internal and sink.topic is not None})

    def source_of(self, topic: str) -> SourceNode:
        """Return the node that reads ``topic``. Raises KeyError if there is none."""
        for source in self._sources():
            if topic in source.topics:
                return source
        raise KeyError(topic)

    def describe(self) -> str:
        """Return the topology as text, as Kafka's ``Topology.describe()`` prints it."""
        return describe(self.subtopologies)

    def outline(self) -> Outline:
        """Return the topology as plain data, fit for JSON; `streams.topology.outline` shows its form."""
        return outline(self.subtopologies, self.stores)

    def mermaid(self) -> str:
        """Return the topology as a Mermaid flowchart."""
        return mermaid(self.subtopologies)

    def svg(self) -> str:
        """Return the topology as an SVG picture."""
        return svg(self.subtopologies)

    def _sources(self) -> list[SourceNode]:
        return [node for node in self.nodes.values() if isinstance(node, SourceNode)]


def add_global_store(
    graph: Graph, spec: StoreSpec, source: SourceNode, processor: str, supplier: Callable[[], Any]
) -> None:
    """Add a global store, and the nodes of its source and its processor; its topic is its changelog."""
    if not callable(supplier):
        raise TopologyError(
            f"{processor}: every instance makes a processor: give its class or a function, not {supplier!r}"
        )
    graph.add(source)
    graph.add_store(replace(spec, cached=False, logged=False))
    operator = run_processor(supplier)
    graph.add(ProcessorNode(name=processor, parents=(source.name,), operator=operator, stores=[spec.name]))


def _check(graph: Graph, subtopologies: tuple[Subtopology, ...]) -> None:
    for part in (part for part in subtopologies if part.is_global):
        own = {name for node in part.sources if node.is_global for name in (node.name, *node.children)}
        users = (node for node in part.nodes if isinstance(node, ProcessorNode) and node.name not in own)
        for other in (node for node in users if part.stores[0] in node.stores):
            raise TopologyError(
                f"{other.name} cannot be given the store {part.stores[0]!r}, which is global: leave it out "
                "of stores=, and read it by context.store(), as any processor may"
            )
    if not subtopologies:
        raise TopologyError(
            "the topology reads no topic: begin with builder.stream(), table() or global_table()"
        )
    for node in graph.nodes.values():
        for store in node.stores if isinstance(node, ProcessorNode) else ():
            if store not in graph.stores:
                raise TopologyError(f"{node.name} names a store {store!r} that was not added")


def _parents(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _serde_or_default(
    node: str, what: str, serde_like: SerdeLike | None, default: Serde[Any] | None
) -> Serde[Any]:
    serde = serde_for(serde_like) or default
    if serde is None:
        raise TopologyError(
            f"{node} needs a {what} serde and none is known: say {what}_serde= here, or in Topology()"
        )
    return serde
