"""The partition count of every topic, which decides the number of tasks. No I/O.

The caller passes the counts of external topics; those that are joined must have the same count. A repartition
topic has the count that the program sets. If there is none, it has that of an external topic it is joined
with. Otherwise it has the largest count of its own group and of the topics its records are from.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from streams.errors import TopologyError
from streams.graph import SourceNode
from streams.topology.topology import Topology


def partition_counts(topology: Topology, external: Mapping[str, int]) -> dict[str, int]:
    """Return the partition counts of all source topics, repartition topics too, by the topology's names.

    A deleted topic that a pattern had matched has 0 partitions. Raises TopologyError for any other source
    topic that is not in ``external``, and for joined topics with different counts.
    """
    sources = _Sources(topology)
    counts = _independent_counts(sources, external)
    groups = [
        [topic for source in sorted(group) for topic in _source(topology, source).topics]
        for group in topology.copartitions
    ]
    for group in groups:
        _check(group, counts)
    pending = sources.internal - counts.keys()
    while pending:
        new = {topic: n for topic in sorted(pending) if (n := _count(sources, topic, groups, counts))}
        if not new:
            raise TopologyError(
                f"it is not known how many partitions the repartition topics {sorted(pending)} need: "
                f"{_why_not_known(topology)}"
            )
        counts.update(new)
        pending -= new.keys()
    for group in groups:
        most = _most(sources, group, counts)
        free = [each for each in group if each in sources.internal]
        counts.update({topic: most for topic in free if sources.by_topic[topic].partitions is None})
        _check(group, counts)
    return counts


class _Sources:
    """A topology's source topics, collected once: a large topology is counted for each of its many tasks."""

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


def _independent_counts(sources: _Sources, external: Mapping[str, int]) -> dict[str, int]:
    """Return the counts that depend on no others: of external topics, and those set by the program."""
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
        if (partitions := sources.by_topic[topic].partitions) is not None:
            counts[topic] = partitions
    return counts


def _count(sources: _Sources, topic: str, groups: list[list[str]], counts: Mapping[str, int]) -> int | None:
    """Return the count of a repartition topic, None or 0 while a count it depends on is unknown."""
    for group in groups:
        if topic not in group:
            continue
        fixed = [
            counts[each]
            for each in group
            if counts.get(each)
            and (each not in sources.internal or sources.by_topic[each].partitions is not None)
        ]
        if fixed:
            return fixed[0]
    above = sources.above.get(topic, [])
    return max((counts[each] for each in above), default=0) if counts.keys() >= set(above) else None


def _why_not_known(topology: Topology) -> str:
    unmatched = [each for each in topology.nodes.values() if isinstance(each, SourceNode) and each.pattern]
    unmatched = [each for each in unmatched if not each.topics]
    if unmatched:
        patterns = ", ".join(repr(each.pattern.pattern) for each in unmatched if each.pattern)
        return f"no topic matches the pattern {patterns}, so make one before the application starts"
    return "they only feed each other"


def _most(sources: _Sources, group: list[str], counts: Mapping[str, int]) -> int:
    """Return the count of a group's repartition topics: that which the program sets, else the largest."""
    fixed = [counts[topic] for topic in group if sources.by_topic[topic].partitions is not None]
    return fixed[0] if fixed else max(counts[topic] for topic in group)


def _check(group: list[str], counts: Mapping[str, int]) -> None:
    counted = [topic for topic in group if counts.get(topic)]
    for topic in counted[1:]:
        if counts[topic] != counts[counted[0]]:
            raise TopologyError(
                f"topics that are joined need the same number of partitions: "
                f"{counted[0]!r} has {counts[counted[0]]}, {topic!r} has {counts[topic]}; "
                "repartition() one of the streams, or make its topic anew"
            )


def _source(topology: Topology, name: str) -> SourceNode:
    node = topology.nodes[name]
    assert isinstance(node, SourceNode)
    return node
