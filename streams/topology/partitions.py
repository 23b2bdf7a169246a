"""How many partitions every topic has, and with that how many tasks there are. No I/O: counts come in.

External topics that are joined must agree. A repartition topic has as many partitions as the program says, or
else the number of the topics it is joined with, if one is external; otherwise the largest of its own group
and of the topics its records come from.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from streams.errors import TopologyError
from streams.graph import SourceNode
from streams.topology.topology import Topology


def partition_counts(topology: Topology, external: Mapping[str, int]) -> dict[str, int]:
    """Partitions of every source topic, repartition topics too, by the topology's names.

    A topic that a pattern has matched and that is gone has 0. Raises TopologyError for another source topic
    that is not in ``external``, and for joined topics that differ.
    """
    sources = _Sources(topology)
    counts = _given(sources, external)
    groups = [
        [topic for source in sorted(group) for topic in _source(topology, source).topics]
        for group in topology.copartitions
    ]
    for group in groups:
        _check(group, counts)
    pending = sources.internal - counts.keys()
    while pending:
        found = {topic: n for topic in sorted(pending) if (n := _count(sources, topic, groups, counts))}
        if not found:
            raise TopologyError(
                f"it is not known how many partitions the repartition topics {sorted(pending)} need: "
                f"{_why_not_known(topology)}"
            )
        counts.update(found)
        pending -= found.keys()
    for group in groups:
        most = _most(sources, group, counts)
        free = [each for each in group if each in sources.internal]
        counts.update({topic: most for topic in free if sources.by_topic[topic].partitions is None})
        _check(group, counts)
    return counts


class _Sources:
    """A topology's source topics, looked up once: a large topology is counted for each of its many tasks."""

    def __init__(self, topology: Topology) -> None:
        nodes = [node for node in topology.nodes.values() if isinstance(node, SourceNode)]
        self.by_topic = {topic: node for node in reversed(nodes) for topic in node.topics}
        self.external = topology.external_topics
        self.internal = frozenset(topology.repartition_topics)
        self.above: defaultdict[str, list[str]] = defaultdict(list)
        """The source topics of the sub-topologies that write a topic."""
        for subtopology in topology.with_tasks:
            topics = subtopology.topics
            for written in {sink.topic for sink in subtopology.sinks if sink.topic is not None}:
                self.above[written] += topics


def _given(sources: _Sources, external: Mapping[str, int]) -> dict[str, int]:
    """The counts that follow from no others: of external topics, and of those the program says."""
    counts: dict[str, int] = {}
    for topic in sources.external:
        if topic not in external and sources.by_topic[topic].pattern is not None:
            counts[topic] = 0
            continue
        if topic not in external:
            raise TopologyError(
                f"source topic {topic!r} does not exist; create it before the application starts"
            )
        counts[topic] = external[topic]
    for topic in sorted(sources.internal):
        if (said := sources.by_topic[topic].partitions) is not None:
            counts[topic] = said
    return counts


def _count(sources: _Sources, topic: str, groups: list[list[str]], counts: Mapping[str, int]) -> int | None:
    """The number of one repartition topic, None while a count it depends on is unknown."""
    for group in groups:
        if topic not in group:
            continue
        given = [
            counts[each]
            for each in group
            if counts.get(each)
            and (each not in sources.internal or sources.by_topic[each].partitions is not None)
        ]
        if given:
            return given[0]
    above = sources.above.get(topic, [])
    return max((counts[each] for each in above), default=0) if counts.keys() >= set(above) else None


def _why_not_known(topology: Topology) -> str:
    unmatched = [each for each in topology.nodes.values() if isinstance(each, SourceNode) and each.pattern]
    unmatched = [each for each in unmatched if not each.topics]
    if unmatched:
        told = ", ".join(repr(each.pattern.pattern) for each in unmatched if each.pattern)
        return f"no topic matches the pattern {told}, so make one before the application starts"
    return "they only feed each other"


def _most(sources: _Sources, group: list[str], counts: Mapping[str, int]) -> int:
    """Partitions of the repartition topics of a group: as many as the program says of one of them."""
    said = [counts[topic] for topic in group if sources.by_topic[topic].partitions is not None]
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
