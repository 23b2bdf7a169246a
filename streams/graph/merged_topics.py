"""``merge.repartition.topics``: one repartition topic behind what changed the key, for all that need it.

Every aggregation, join and table below a node that changes keys has a repartition topic of its own. They are
replaced by one right below that node, or below the merge of streams with new keys. It takes the name of the
first of them, and the nodes that were in between come behind it:

    select_key ─┬─ filter ── topic 1 ── count          select_key ── topic 1 ─┬─ filter ── count
                └─ topic 2 ── reduce             →                            └─ reduce

As in Kafka a topic is not moved over a node that changes values, for the new ones have another serde. Nor, as
Kafka does, over a processor of the user's or a join with a global table, which may change them too; nor over
a merge, if topics that another branch of it does not need are below the same node: those records would not
pass the topic.
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
    """Repartition topics that become one below the node `below`."""

    below: str
    topics: list[Repartition]


def merge_repartition_topics(graph: Graph) -> None:
    """Rewrite the graph. Topics that the user asked for, by `repartition()`, stay."""
    for merged in _found(graph):
        _merge(graph, merged)


def _found(graph: Graph) -> list[_Merged]:
    """What is to be merged, in Kafka's order: below nodes that change keys, then below merges."""
    below_changer: dict[str, list[Repartition]] = {
        node.name: [] for node in graph.nodes.values() if _changes_keys(node)
    }
    for each in graph.repartitions.values():
        changer = _changer(graph, each)
        if changer is not None:
            below_changer[changer].append(each)
    below_merge: dict[str, list[Repartition]] = {}
    found: list[_Merged] = []
    for changer, topics in below_changer.items():
        anchors = {_anchor(graph, each) for each in topics}
        if anchors == {changer}:
            found.append(_Merged(changer, topics))
        elif len(anchors) == 1 and (merge := anchors.pop()) is not None:
            below_merge.setdefault(merge, []).extend(topics)
        else:
            own = [each for each in topics if _anchor(graph, each) == changer]
            if own:
                found.append(_Merged(changer, own))
    merges = [name for name in graph.nodes if name in below_merge]
    return found + [_Merged(name, below_merge[name]) for name in merges]


def _changes_keys(node: Node) -> bool:
    return isinstance(node, ProcessorNode) and node.changes == "keys"


def _changes_values(node: Node) -> bool:
    return isinstance(node, ProcessorNode) and node.changes == "values"


def _changer(graph: Graph, topic: Repartition) -> str | None:
    """The node that changed the keys, by Kafka's search upwards: None if values were changed behind it."""
    first = _above(graph, topic.names.filter, lambda node: _changes_keys(node) or _changes_values(node))
    return first if first == _above(graph, topic.names.filter, _changes_keys) else None


def _above(graph: Graph, name: str, fits: Callable[[Node], bool]) -> str | None:
    """A node above that fits: as in Kafka a parent, if one does, else what is above the last parent."""
    found = None
    for parent in graph.parents_of(name):
        if fits(graph.nodes[parent]):
            return parent
        found = _above(graph, parent, fits)
    return found


def _anchor(graph: Graph, topic: Repartition) -> str | None:
    """The one node that all of the topic's records come from, where keys were changed or streams merged; None
    if what is in between may have changed them.
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
    graph.insert_behind(
        merged.below,
        ProcessorNode(name=names.filter, parents=(merged.below,), operator=keep),
        replace(sink, name=names.sink, parents=(names.filter,)),
        replace(source, name=names.source),
    )


def _top(graph: Graph, topic: Repartition, below: str) -> str:
    """The node right below ``below`` on the way to the topic."""
    name = topic.names.filter
    while graph.nodes[name].parents != (below,):
        (name,) = graph.nodes[name].parents
    return name
