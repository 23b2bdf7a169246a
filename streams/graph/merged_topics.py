"""``merge.repartition.topics``: one repartition topic after a change of keys, for all nodes that need it.

Every aggregation, join and table below a node that changes keys has a repartition topic of its own. They are
replaced by one right below that node, or below the merge of streams with new keys. It takes the name of the
first of them, and the nodes that were in between follow it:

    select_key ─┬─ filter ── topic 1 ── count          select_key ── topic 1 ─┬─ filter ── count
                └─ topic 2 ── reduce             →                            └─ reduce

As in Kafka, a topic is not moved above a node that changes values, because the new values have another serde.
Unlike in Kafka, it is not moved above a user's processor or a join with a global table, which may change
values too. Nor is it moved above a merge if topics below the same node are not needed by another branch: that
branch's records would not pass the topic.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from streams.graph.graph import Graph, Repartition
from streams.graph.names import RepartitionNames
from streams.graph.node import Node, ProcessorNode, SinkNode, SourceNode
from streams.processors.stateless.stateless import drop_null_keys


@dataclass(frozen=True, slots=True)
class _Merged:
    """Repartition topics to replace by one below the node `below`."""

    below: str
    topics: list[Repartition]


def merge_repartition_topics(graph: Graph) -> None:
    """Merge the graph's repartition topics, except those that the user added by `repartition()`."""
    for merged in _mergeable(graph):
        _merge(graph, merged)


def _mergeable(graph: Graph) -> list[_Merged]:
    """Return the topics to merge, in Kafka's order: below nodes that change keys, then below merges."""
    below_changer: dict[str, list[Repartition]] = {
        node.name: [] for node in graph.nodes.values() if _changes_keys(node)
    }
    for each in graph.repartitions.values():
        changer = _changer(graph, each)
        if changer is not None:
            below_changer[changer].append(each)
    below_merge: dict[str, list[Repartition]] = {}
    mergeable: list[_Merged] = []
    for changer, topics in below_changer.items():
        anchors = {_anchor(graph, each) for each in topics}
        if anchors == {changer}:
            mergeable.append(_Merged(changer, topics))
        elif len(anchors) == 1 and (merge := anchors.pop()) is not None:
            below_merge.setdefault(merge, []).extend(topics)
        else:
            own = [each for each in topics if _anchor(graph, each) == changer]
            if own:
                mergeable.append(_Merged(changer, own))
    merges = [name for name in graph.nodes if name in below_merge]
    return mergeable + [_Merged(name, below_merge[name]) for name in merges]


def _changes_keys(node: Node) -> bool:
    return isinstance(node, ProcessorNode) and node.changes == "keys"


def _changes_values(node: Node) -> bool:
    return isinstance(node, ProcessorNode) and node.changes == "values"


def _changer(graph: Graph, topic: Repartition) -> str | None:
    """Return the node that changed the keys, by Kafka's search upwards; None if values were changed later."""
    first = _above(graph, topic.names.filter, lambda node: _changes_keys(node) or _changes_values(node))
    return first if first == _above(graph, topic.names.filter, _changes_keys) else None


def _above(graph: Graph, name: str, fits: Callable[[Node], bool]) -> str | None:
    """Return a node above that fits: as in Kafka a parent, or else the one above the last parent."""
    above = None
    for parent in graph.parents_of(name):
        if fits(graph.nodes[parent]):
            return parent
        above = _above(graph, parent, fits)
    return above


def _anchor(graph: Graph, topic: Repartition) -> str | None:
    """Return the nearest node above the topic that changes keys or merges streams.

    Returns None if a node in between may have changed values, or has several parents.
    """
    parents = graph.nodes[topic.names.filter].parents
    while len(parents) == 1:
        node = graph.nodes[parents[0]]
        if not isinstance(node, ProcessorNode) or node.changes == "values":
            return None
        if node.changes == "keys" or node.is_merge:
            return node.name
        parents = node.parents
    return None


def _merge(graph: Graph, merged: _Merged) -> None:
    first = merged.topics[0].names
    names = RepartitionNames(
        first.topic, f"{first.topic}-sink", f"{first.topic}-filter", f"{first.topic}-source"
    )
    sink, source = graph.nodes[first.sink], graph.nodes[first.source]
    assert isinstance(sink, SinkNode) and isinstance(source, SourceNode)
    moved = {_top(graph, each, merged.below) for each in merged.topics}
    for each in merged.topics:
        (parent,) = graph.nodes[each.names.filter].parents
        below = names.source if parent == merged.below else parent
        graph.replace_parent(each.names.source, below)
        graph.copartitions = [
            frozenset(names.source if name == each.names.source else name for name in group)
            for group in graph.copartitions
        ]
        for name in (each.names.filter, each.names.sink, each.names.source):
            del graph.nodes[name]
        del graph.repartitions[each.names.topic]
    for name in moved & graph.nodes.keys():
        graph.replace_parent(merged.below, names.source, of=name)
    keep = drop_null_keys(unless=lambda: graph.takes_null_keys(names.source))
    graph.insert_after(
        merged.below,
        ProcessorNode(name=names.filter, parents=(merged.below,), operator=keep),
        replace(sink, name=names.sink, parents=(names.filter,)),
        replace(source, name=names.source),
    )


def _top(graph: Graph, topic: Repartition, below: str) -> str:
    """Return the node right below ``below`` on the path to the topic."""
    name = topic.names.filter
    while graph.nodes[name].parents != (below,):
        (name,) = graph.nodes[name].parents
    return name
