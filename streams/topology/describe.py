"""The text of ``Topology.describe()``: exactly Kafka's, so that its visualisers can read it.

Kafka sorts nodes by the number of nodes below them, and sorts parents and children while it is still
counting. The counts at that moment depend on the order of Java's collections, which `java_order` reproduces.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from streams.graph import Node, ProcessorNode, SinkNode, SourceNode
from streams.topology.java_order import TreeSet, bucket_of
from streams.topology.subtopology import Subtopology


def describe(subtopologies: Iterable[Subtopology]) -> str:
    """Return the description of all sub-topologies."""
    return "Topologies:\n " + "".join(_describe_one(each) for each in subtopologies)


@dataclass(slots=True, eq=False)
class _Entry:
    """A node to be described. ``size``: the number of nodes below it, itself included."""

    node: Node
    size: int = 1
    parents: TreeSet[_Entry] = field(default_factory=lambda: TreeSet(_rank))
    children: TreeSet[_Entry] = field(default_factory=lambda: TreeSet(_rank))

    def grow(self, by: int) -> None:
        """Add a number of nodes to the sizes of this node and of all nodes above it."""
        self.size += by
        for parent in self.parents:
            parent.grow(by)


def _rank(entry: _Entry) -> tuple[int, str]:
    """Return the sort key of a node: the larger size first, then the name."""
    return -entry.size, entry.node.name


def _describe_one(subtopology: Subtopology) -> str:
    remark = " for global store (will not generate tasks)" if subtopology.is_global else ""
    lines = [f"  Sub-topology: {subtopology.id}{remark}"]
    for entry in sorted(_linked(subtopology.nodes), key=_rank):
        node, children, parents = entry.node, _names(entry.children), _names(entry.parents)
        if isinstance(node, SourceNode):
            lines.append(f"    Source: {node.name} (topics: {_read_by(node)})")
            lines.append(f"      --> {children}")
        elif isinstance(node, ProcessorNode):
            lines.append(f"    Processor: {node.name} (stores: [{_set(node.stores)}])")
            lines.append(f"      --> {children}")
            lines.append(f"      <-- {parents}")
        elif isinstance(node, SinkNode):
            lines.append(f"    Sink: {node.name} ({target_of(node)})")
            lines.append(f"      <-- {parents}")
    return "\n".join(lines) + ("\n" if subtopology.is_global else "\n\n")


def _read_by(source: SourceNode) -> str:
    """Return the topics of a source, or its pattern, as text."""
    return f"[{_set(source.topics)}]" if source.pattern is None else source.pattern.pattern


def target_of(sink: SinkNode) -> str:
    """Return the target of a sink, in Kafka's words."""
    return f"topic: {sink.topic}" if sink.choose_topic is None else f"extractor class: {chooser_of(sink)}"


def chooser_of(sink: SinkNode) -> str:
    """Return the name of the function that chooses a sink's topics, or the text of another object."""
    return str(getattr(sink.choose_topic, "__qualname__", sink.choose_topic))


def _names(entries: Iterable[_Entry]) -> str:
    return ", ".join(entry.node.name for entry in entries) or "none"


def _linked(nodes: Iterable[Node]) -> list[_Entry]:
    """Return the nodes' entries, each sorted among its parents' children by the sizes at that moment."""
    entries = {node.name: _Entry(node) for node in nodes}
    for name in sorted(entries, key=bucket_of(len(entries))):
        entry = entries[name]
        for parent in (entries[each] for each in entry.node.parents):
            entry.parents.add(parent)
            parent.children.add(entry)
            parent.grow(entry.size)
    return list(entries.values())


def _set(names: Collection[str]) -> str:
    """Return names as text, in the order of Java's HashSet."""
    return ", ".join(sorted(names, key=bucket_of(len(names))))
