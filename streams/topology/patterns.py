"""Sources that read topics by a pattern: which topics these are. No I/O: names of topics come in.

An application that runs a topology with patterns has a copy of its own (`own_topology`). Its sources are
given the topics that exist, again at each assignment. The group's leader decides these for all instances
(`streams.runtime.assignment.protocol`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from streams.errors import TopologyError
from streams.graph import SourceNode
from streams.topology.topology import Topology

Matched = Mapping[str, Sequence[str]]
"""Topics by the names of the sources that read them by a pattern; sorted."""


def pattern_sources(topology: Topology) -> list[SourceNode]:
    """The sources that read by a pattern."""
    return [
        node for node in topology.nodes.values() if isinstance(node, SourceNode) and node.pattern is not None
    ]


def own_topology(topology: Topology) -> Topology:
    """The topology itself, or a copy to be told of topics where it has patterns."""
    return topology.copy() if pattern_sources(topology) else topology


def match_topics(topology: Topology, names: Iterable[str]) -> Matched:
    """Find the topics that each pattern matches whole.

    Raises TopologyError for a topic that two patterns match: as in Kafka one source reads it.
    """
    sources = pattern_sources(topology)
    matched: dict[str, list[str]] = {source.name: [] for source in sources}
    for topic in sorted(names):
        fitting = [each for each in sources if each.pattern is not None and each.pattern.fullmatch(topic)]
        if len(fitting) > 1:
            told = " and ".join(
                f"{each.pattern.pattern!r} of {each.name}" for each in fitting if each.pattern
            )
            raise TopologyError(
                f"topic {topic!r} matches {told}: one source reads a topic, so let one pattern match it"
            )
        for source in fitting:
            matched[source.name].append(topic)
    return matched


def read_topics(topology: Topology, matched: Matched) -> None:
    """Have the sources with patterns read these topics from now on."""
    for source in pattern_sources(topology):
        source.topics = tuple(matched.get(source.name, ()))
