"""How many partitions every topic has, and with that how many tasks there are. No I/O: counts come in.

External topics that are joined must agree. A repartition topic has as many partitions as the program says, or
else the number of the topics it is joined with, if one is external; otherwise the largest of its own group
and of the topics its records come from.
"""

from __future__ import annotations

from collections.abc import Mapping

from streams.errors import TopologyError
from streams.graph import SourceNode
from streams.topology.topology import Topology


def partition_counts(topology: Topology, external: Mapping[str, int]) -> dict[str, int]:
    """Partitions of every source topic, repartition topics too, by the topology's names.

    A topic that a pattern has matched and that is gone has 0. Raises TopologyError for another source topic
    that is not in ``external``, and for joined topics that differ.
    """
    counts: dict[str, int] = {}
    for topic in topology.external_topics:
        if topic not in external and topology.source_of(topic).pattern is not None:
            counts[topic] = 0
            continue
        if topic not in external:
            raise TopologyError(
                f"source topic {topic!r} does not exist; create it before the application starts"
            )
        counts[topic] = external[topic]
    for topic in topology.repartition_topics:
        if (said := topology.source_of(topic).partitions) is not None:
            counts[topic] = said
    groups = [
        [topic for source in sorted(group) for topic in _source(topology, source).topics]
        for group in topology.copartitions
    ]
    for group in groups:
        _check(group, counts)
    pending = set(topology.repartition_topics) - counts.keys()
    while pending:
        found = {topic: n for topic in sorted(pending) if (n := _count(topology, topic, groups, counts))}
        if not found:
            raise TopologyError(
                f"it is not known how many partitions the repartition topics {sorted(pending)} need: "
                f"{_why_not_known(topology)}"
            )
        counts.update(found)
        pending -= found.keys()
    for group in groups:
        most = _most(topology, group, counts)
        free = (each for each in group if each in topology.repartition_topics)
        counts.update({topic: most for topic in free if topology.source_of(topic).partitions is None})
        _check(group, counts)
    return counts


def _count(topology: Topology, topic: str, groups: list[list[str]], counts: Mapping[str, int]) -> int | None:
    """The number of one repartition topic, None while a count it depends on is unknown."""
    external = topology.external_topics
    for group in groups:
        given = [
            counts[each]
            for each in group
            if counts.get(each) and (each in external or topology.source_of(each).partitions is not None)
        ]
        if topic in group and given:
            return given[0]
    above = [
        source
        for subtopology in topology.with_tasks
        if any(sink.topic == topic for sink in subtopology.sinks)
        for source in subtopology.topics
    ]
    return max((counts[each] for each in above), default=0) if counts.keys() >= set(above) else None


def _why_not_known(topology: Topology) -> str:
    unmatched = [each for each in topology.nodes.values() if isinstance(each, SourceNode) and each.pattern]
    unmatched = [each for each in unmatched if not each.topics]
    if unmatched:
        told = ", ".join(repr(each.pattern.pattern) for each in unmatched if each.pattern)
        return f"no topic matches the pattern {told}, so make one before the application starts"
    return "they only feed each other"


def _most(topology: Topology, group: list[str], counts: Mapping[str, int]) -> int:
    """Partitions of the repartition topics of a group: as many as the program says of one of them."""
    said = [counts[topic] for topic in group if topology.source_of(topic).partitions is not None]
    return said[0] if said else max(counts[topic] for topic in group)


def _check(group: list[str], counts: Mapping[str, int]) -> None:
    known = [topic for topic in group if counts.get(topic)]
    for topic in known[1:]:
        if counts[topic] != counts[known[0]]:
            raise TopologyError(
                f"topics that are joined need the same number of partitions: "
                f"{known[0]!r} has {counts[known[0]]}, {topic!r} has {counts[topic]}; "
                "repartition() one of the streams, or make its topic anew"
            )


def _source(topology: Topology, name: str) -> SourceNode:
    node = topology.nodes[name]
    assert isinstance(node, SourceNode)
    return node
