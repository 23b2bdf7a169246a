"""The text of ``Topology.describe()``: Kafka's, to the letter, so that its visualisers read it.

Kafka sorts by how much is below a node, and sorts parents and children while it is still counting that. What
it has counted by then depends on the order of Java's collections, which is therefore followed (`java_order`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from streams.graph import Node, ProcessorNode, SinkNode, SourceNode
from streams.topology.java_order import TreeSet, bucket_of
from streams.topology.subtopology import Subtopology


def describe(subtopologies: Iterable[Subtopology]) -> str:
    """Describe all sub-topologies."""
    return "Topologies:\n " + "".join(_describe_one(each) for each in subtopologies)


@dataclass(slots=True, eq=False)
class _Entry:
    """A node while it is described. ``size``: of the tree below it, itself included."""

    node: Node
    size: int = 1
    parents: TreeSet[_Entry] = field(default_factory=lambda: TreeSet(_rank))
    children: TreeSet[_Entry] = field(default_factory=lambda: TreeSet(_rank))

    def grow(self, by: int) -> None:
        """This much more is below it, and below all above it."""
        self.size += by
        for parent in self.parents:
            parent.grow(by)


def _rank(entry: _Entry) -> tuple[int, str]:
    """Nodes with more below them come first, then names."""
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
    """The topics of a source, or its pattern."""
    return f"[{_set(source.topics)}]" if source.pattern is None else source.pattern.pattern


def target_of(sink: SinkNode) -> str:
    """Where a sink writes, in Kafka's words."""
    return f"topic: {sink.topic}" if sink.choose_topic is None else f"extractor class: {chooser_of(sink)}"


def chooser_of(sink: SinkNode) -> str:
    """What chooses a sink's topics: its name, or its text if it is no function."""
    return str(getattr(sink.choose_topic, "__qualname__", sink.choose_topic))


def _names(entries: Iterable[_Entry]) -> str:
    return ", ".join(entry.node.name for entry in entries) or "none"


def _linked(nodes: Iterable[Node]) -> list[_Entry]:
    """The entries, each put among its parents' children by the sizes known at that moment."""
    entries = {node.name: _Entry(node) for node in nodes}
    for name in sorted(entries, key=bucket_of(len(entries))):
        entry = entries[name]
        for parent in (entries[each] for each in entry.node.parents):
            entry.parents.add(parent)
            parent.children.add(entry)
            parent.grow(entry.size)
    return list(entries.values())


def _set(names: Collection[str]) -> str:
    """Names as a HashSet of Java's tells them."""
    return ", ".join(sorted(names, key=bucket_of(len(names))))
