"""The text of ``Topology.describe()``: Kafka's, to the letter, so that its visualisers read it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

from streams.graph import Node, ProcessorNode, SinkNode, SourceNode
from streams.topology.subtopology import Subtopology


def describe(subtopologies: Iterable[Subtopology]) -> str:
    """Describe all sub-topologies."""
    return "Topologies:\n " + "".join(_describe_one(each) for each in subtopologies)


def _describe_one(subtopology: Subtopology) -> str:
    order = _order(subtopology)
    nodes = sorted(subtopology.nodes, key=lambda node: order(node.name))
    lines = [f"  Sub-topology: {subtopology.id}"]
    for node in nodes:
        children = ", ".join(sorted(set(node.children), key=order)) or "none"
        parents = ", ".join(sorted(set(node.parents), key=order)) or "none"
        if isinstance(node, SourceNode):
            lines.append(f"    Source: {node.name} (topics: [{', '.join(node.topics)}])")
            lines.append(f"      --> {children}")
        elif isinstance(node, ProcessorNode):
            lines.append(f"    Processor: {node.name} (stores: [{', '.join(node.stores)}])")
            lines.append(f"      --> {children}")
            lines.append(f"      <-- {parents}")
        else:
            assert isinstance(node, SinkNode)
            lines.append(f"    Sink: {node.name} ({target_of(node)})")
            lines.append(f"      <-- {parents}")
    return "\n".join(lines) + "\n\n"


def target_of(sink: SinkNode) -> str:
    """Where a sink writes. What chooses the topic is told by its name, or its text if it is no function."""
    if sink.choose_topic is None:
        return f"topic: {sink.topic}"
    chooser = sink.choose_topic
    return f"extractor class: {getattr(chooser, '__qualname__', chooser)}"


def _order(subtopology: Subtopology) -> Callable[[str], tuple[int, str]]:
    """Nodes with more below them come first, then names; as Kafka's NODE_COMPARATOR."""
    by_name: dict[str, Node] = {node.name: node for node in subtopology.nodes}

    @cache
    def size(name: str) -> int:
        return 1 + sum(size(child) for child in by_name[name].children)

    return lambda name: (-size(name), name)
