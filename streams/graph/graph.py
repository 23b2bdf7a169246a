"""The graph a builder fills: nodes in the order they were made, stores, and who must be co-partitioned."""

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
    """A repartition topic that a join or aggregation needs, and so may share with others."""

    names: RepartitionNames


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamJoin:
    """The nodes of a join of two streams; `self_join` takes the place of the two that look up, where both
    streams turn out to be one.
    """

    keep_left: str
    keep_right: str
    join_left: str
    join_right: str
    merge: str
    left_store: str
    self_join: Operator


class Graph:
    """Nodes and stores of one topology under construction."""

    def __init__(self) -> None:
        self.names = Names()
        self.nodes: dict[str, Node] = {}
        self.stores: dict[str, StoreSpec] = {}
        self.copartitions: list[frozenset[str]] = []
        """Sets of source nodes whose topics must have the same number of partitions."""
        self.repartitions: dict[str, Repartition] = {}
        """By topic."""
        self.stream_joins: list[StreamJoin] = []
        self.table_topics: dict[str, str] = {}
        """Stores of tables that are read from a topic, and that; also of stores that are not asked for."""

    def copy(self) -> Graph:
        """A graph to be changed while this one stays as it is."""
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

    def move_to_end(self, *names: str) -> None:
        """Let these nodes be built as if they had been added only now."""
        for name in names:
            self.nodes[name] = self.nodes.pop(name)

    def replace_parent(self, parent: str, by: str, *, of: str | None = None) -> None:
        """Put what is below a node below another one: all of it, or one node. `relink` comes next."""
        for node in self.nodes.values() if of is None else [self.nodes[of]]:
            node.parents = tuple(by if name == parent else name for name in node.parents)
            node.reads_of = tuple(by if name == parent else name for name in node.reads_of)

    def insert_behind(self, name: str, *nodes: Node) -> None:
        """Add nodes to be built right behind this one. `relink` comes next."""
        ordered: dict[str, Node] = {}
        for each in self.nodes.values():
            ordered[each.name] = each
            if each.name == name:
                ordered.update({node.name: node for node in nodes})
        self.nodes = ordered

    def relink(self) -> None:
        """Have every node's children be those that it is a parent of."""
        for node in self.nodes.values():
            node.children = []
        for node in self.nodes.values():
            for parent in node.parents:
                self.nodes[parent].children.append(node.name)

    def parents_of(self, name: str) -> list[str]:
        """What is above a node, also behind a repartition topic; of a join both that are joined."""
        node = self.nodes[name]
        if isinstance(node, SourceNode) and node.internal:
            sinks = (each for each in self.nodes.values() if isinstance(each, SinkNode) and each.internal)
            return [sink.name for sink in sinks if sink.topic in node.topics]
        return list(node.reads_of or node.parents)

    def in_build_order(self) -> dict[str, Node]:
        """The nodes as Kafka builds them, which numbers sub-topologies and orders children (sorted here too):
        the first that was added of those whose parents are built.

        A repartition topic's source counts as below its sink. Only nodes that were moved come out of line.
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
        """The source behind a sink to a repartition topic."""
        if not isinstance(node, SinkNode) or not node.internal:
            return []
        return [
            source.name
            for source in self.nodes.values()
            if isinstance(source, SourceNode) and source.internal and node.topic in source.topics
        ]

    def takes_null_keys(self, node: str) -> bool:
        """Return True if a node below this one does, also behind repartition topics."""
        above, seen = [node], {node}
        while above:
            found = self.nodes[above.pop()]
            if isinstance(found, ProcessorNode) and found.takes_null_keys:
                return True
            below = {*found.children, *self._read_back(found)} - seen
            above.extend(below)
            seen |= below
        return False

    def add_store(self, spec: StoreSpec) -> None:
        """Declare a store; names are unique."""
        if spec.name in self.stores:
            raise TopologyError(f"a store named {spec.name!r} is there already")
        self.stores[checked(spec.name)] = spec


def _check_pattern(source: SourceNode, other: SourceNode) -> None:
    """TopologyError if a topic that the other source names matches this one's pattern."""
    if source.pattern is None:
        return
    for topic in other.topics:
        if source.pattern.fullmatch(topic):
            raise TopologyError(
                f"topic {topic!r}, read by {other.name}, also matches the pattern "
                f"{source.pattern.pattern!r} of {source.name}: a topic is read by one source only"
            )
