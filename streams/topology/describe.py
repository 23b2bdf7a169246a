"""The text of ``Topology.describe()``: Kafka's, to the letter, so that its visualisers read it.

Kafka sorts by how much is below a node, and sorts parents and children while it is still counting that. What
it has counted by then depends on the order of a Java HashMap, which is therefore followed here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from streams.graph import Node, ProcessorNode, SinkNode, SourceNode
from streams.topology.subtopology import Subtopology


def describe(subtopologies: Iterable[Subtopology]) -> str:
    """Describe all sub-topologies."""
    return "Topologies:\n " + "".join(_describe_one(each) for each in subtopologies)


@dataclass(slots=True, eq=False)
class _Entry:
    """A node while it is described. ``size``: of the tree below it, itself included."""

    node: Node
    size: int = 1
    parents: list[_Entry] = field(default_factory=list)
    children: list[_Entry] = field(default_factory=list)

    @property
    def rank(self) -> tuple[int, str]:
        """Nodes with more below them come first, then names."""
        return -self.size, self.node.name

    def grow(self, by: int) -> None:
        """This much more is below it, and below all above it."""
        self.size += by
        for parent in self.parents:
            parent.grow(by)


def _describe_one(subtopology: Subtopology) -> str:
    remark = " for global store (will not generate tasks)" if subtopology.is_global else ""
    lines = [f"  Sub-topology: {subtopology.id}{remark}"]
    for entry in sorted(_linked(subtopology.nodes), key=lambda entry: entry.rank):
        node, children, parents = entry.node, _names(entry.children), _names(entry.parents)
        if isinstance(node, SourceNode):
            lines.append(f"    Source: {node.name} (topics: [{', '.join(node.topics)}])")
            lines.append(f"      --> {children}")
        elif isinstance(node, ProcessorNode):
            stores = ", ".join(sorted(node.stores, key=_bucket(len(node.stores))))
            lines.append(f"    Processor: {node.name} (stores: [{stores}])")
            lines.append(f"      --> {children}")
            lines.append(f"      <-- {parents}")
        elif isinstance(node, SinkNode):
            lines.append(f"    Sink: {node.name} (topic: {node.topic})")
            lines.append(f"      <-- {parents}")
    return "\n".join(lines) + ("\n" if subtopology.is_global else "\n\n")


def _names(entries: list[_Entry]) -> str:
    return ", ".join(entry.node.name for entry in entries) or "none"


def _linked(nodes: Iterable[Node]) -> list[_Entry]:
    """The entries, each put among its parents' children by the sizes known at that moment."""
    entries = {node.name: _Entry(node) for node in nodes}
    for name in sorted(entries, key=_bucket(len(entries))):
        entry = entries[name]
        for parent in (entries[each] for each in entry.node.parents):
            _insert(entry.parents, parent)
            _insert(parent.children, entry)
            parent.grow(entry.size)
    return list(entries.values())


def _insert(into: list[_Entry], entry: _Entry) -> None:
    place = next((n for n, other in enumerate(into) if entry.rank < other.rank), len(into))
    into.insert(place, entry)


def _bucket(count: int) -> Callable[[str], int]:
    """Where a name goes in a HashMap of so many; within a bucket the order of insertion stays."""
    buckets = 16
    while count > buckets * 3 // 4:
        buckets *= 2

    def bucket(name: str) -> int:
        value = 0
        for character in name:
            value = (31 * value + ord(character)) & 0xFFFFFFFF
        return (value ^ value >> 16) & (buckets - 1)

    return bucket
