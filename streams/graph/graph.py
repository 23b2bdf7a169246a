"""The graph that a builder fills: nodes in the order of creation, stores, and co-partitioned sources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import get_args

from streams.errors import TopologyError
from streams.graph.names import Names, RepartitionNames, checked
from streams.graph.node import Node, OffsetReset, ProcessorNode, SinkNode, SourceNode
from streams.processors.wiring import Operator
from streams.state import StoreSpec


@dataclass(frozen=True, slots=True)
class Repartition:
    """A repartition topic that a join or aggregation needs, and may share with others."""

    names: RepartitionNames


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamJoin:
    """The nodes of a join of two streams.

    If both streams are one, `self_join` replaces the operators of the two nodes that look up.
    """

    keep_left: str
    keep_right: str
    join_left: str
    join_right: str
    merge: str
    left_store: str
    self_join: Operator


class Graph:
    """The nodes and stores of a topology under construction."""

    def __init__(self) -> None:
        self.names = Names()
        self.nodes: dict[str, Node] = {}
        self.stores: dict[str, StoreSpec] = {}
        self.copartitions: list[frozenset[str]] = []
        """Sets of source nodes whose topics must have the same number of partitions."""
        self.repartitions: dict[str, Repartition] = {}
        """Repartition topics that may be merged, by topic."""
        self.stream_joins: list[StreamJoin] = []
        self.table_topics: dict[str, str] = {}
        """The topics from which tables are read, by store; includes stores that are not used."""

    def copy(self) -> Graph:
        """Return a copy that can be changed without changing this graph."""
        graph = Graph()
        graph.names = self.names
        for name, node in self.nodes.items():
            copied = graph.nodes[name] = replace(node, children=list(node.children))
            if isinstance(copied, ProcessorNode):
                copied.stores = list(copied.stores)
        graph.stores, graph.copartitions = dict(self.stores), list(self.copartitions)
        graph.repartitions, graph.stream_joins = dict(self.repartitions), list(self.stream_joins)
        graph.table_topics = dict(self.table_topics)
        return graph

    def add(self, node: Node) -> Node:
        """Add a node below its parents, which the graph must have. Raises TopologyError if it cannot."""
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
        if not node.topics and node.pattern is None:
            raise TopologyError(f"source {node.name} names no topic")
        if node.reset is not None and node.reset not in get_args(OffsetReset):
            raise TopologyError(f"source {node.name}: reset is {node.reset!r}, it may be earliest or latest")
        for other in self.nodes.values():
            if not isinstance(other, SourceNode):
                continue
            if shared := set(other.topics) & set(node.topics):
                raise TopologyError(
                    f"topic {sorted(shared)[0]!r} is read already, by {other.name}: use that stream or table "
                    "twice, or read the same topics in both places"
                )
            _check_pattern(node, other)
            _check_pattern(other, node)

    def connect(self, stores: Iterable[str | StoreSpec]) -> list[str]:
        """Return the names of a processor's stores; a `StoreSpec` is added to the graph, unless it has it."""
        names = []
        for store in stores:
            if isinstance(store, StoreSpec):
                if self.stores.get(store.name) is not store:
                    self.add_store(store)
                names.append(store.name)
            else:
                names.append(store)
        return names

    def move_to_end(self, *names: str) -> None:
        """Move nodes to the end of the build order, as if they were added now."""
        for name in names:
            self.nodes[name] = self.nodes.pop(name)

    def replace_parent(self, parent: str, by: str, *, of: str | None = None) -> None:
        """Move a node's children below another node: all of them, or one (``of``). Call `relink` next."""
        for node in self.nodes.values() if of is None else [self.nodes[of]]:
            node.parents = tuple(by if name == parent else name for name in node.parents)
            node.reads_of = tuple(by if name == parent else name for name in node.reads_of)

    def insert_after(self, name: str, *nodes: Node) -> None:
        """Add nodes right after this one in the build order. Call `relink` next."""
        ordered: dict[str, Node] = {}
        for each in self.nodes.values():
            ordered[each.name] = each
            if each.name == name:
                ordered.update({node.name: node for node in nodes})
        self.nodes = ordered

    def relink(self) -> None:
        """Set every node's children to the nodes that name it as a parent."""
        for node in self.nodes.values():
            node.children = []
        for node in self.nodes.values():
            for parent in node.parents:
                self.nodes[parent].children.append(node.name)

    def parents_of(self, name: str) -> list[str]:
        """Return the nodes above a node: of a repartition source, its sinks; of a join, both joined nodes."""
        node = self.nodes[name]
        if isinstance(node, SourceNode) and node.internal:
            sinks = (each for each in self.nodes.values() if isinstance(each, SinkNode) and each.internal)
            return [sink.name for sink in sinks if sink.topic in node.topics]
        return list(node.reads_of or node.parents)

    def in_build_order(self) -> dict[str, Node]:
        """Return the nodes in Kafka's build order, which numbers sub-topologies; sort all children by it.

        The next node is always the first added among those whose parents are built. A repartition topic's
        source is below its sink. So only nodes that were moved differ from the order of addition.
        """
        rank = {name: number for number, name in enumerate(self.nodes)}
        below = {name: [*node.children, *self._read_back(node)] for name, node in self.nodes.items()}
        for name, node in self.nodes.items():
            for above in node.reads_of:
                below[above].append(name)
        missing = Counter(child for children in below.values() for child in children)
        ready = [(rank[name], name) for name in self.nodes if not missing[name]]
        ordered: dict[str, Node] = {}
        while ready:
            name = heappop(ready)[1]
            ordered[name] = self.nodes[name]
            for child in below[name]:
                missing[child] -= 1
                if not missing[child]:
                    heappush(ready, (rank[child], child))
        position = {name: number for number, name in enumerate(ordered)}
        for node in ordered.values():
            node.children.sort(key=position.__getitem__)
        return ordered

    def _read_back(self, node: Node) -> list[str]:
        """Return the source that reads the repartition topic of a sink; none for other nodes."""
        if not isinstance(node, SinkNode) or not node.internal:
            return []
        return [
            source.name
            for source in self.nodes.values()
            if isinstance(source, SourceNode) and source.internal and node.topic in source.topics
        ]

    def takes_null_keys(self, node: str) -> bool:
        """Return True if the node, or one below it, even past repartition topics, accepts null keys."""
        waiting, visited = [node], {node}
        while waiting:
            each = self.nodes[waiting.pop()]
            if isinstance(each, ProcessorNode) and each.takes_null_keys:
                return True
            below = {*each.children, *self._read_back(each)} - visited
            waiting.extend(below)
            visited |= below
        return False

    def add_store(self, spec: StoreSpec) -> None:
        """Add a store. Raises TopologyError if its name is taken."""
        if spec.name in self.stores:
            raise TopologyError(f"a store named {spec.name!r} is there already")
        self.stores[checked(spec.name)] = spec


def _check_pattern(source: SourceNode, other: SourceNode) -> None:
    """Raise TopologyError if a topic that the other source names matches this source's pattern."""
    if source.pattern is None:
        return
    for topic in other.topics:
        if source.pattern.fullmatch(topic):
            raise TopologyError(
                f"topic {topic!r}, read by {other.name}, also matches the pattern "
                f"{source.pattern.pattern!r} of {source.name}: a topic is read by one source only"
            )
