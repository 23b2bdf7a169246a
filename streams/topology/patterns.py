"""The topics of sources that read by a pattern. No I/O: the existing topics are arguments.

An application that runs a topology with patterns has a copy of its own (`own_topology`). At each assignment
its sources are set to the matching topics, which the group's leader decides for all instances
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
    """Return the sources that read by a pattern."""
    return [
        node for node in topology.nodes.values() if isinstance(node, SourceNode) and node.pattern is not None
    ]


def own_topology(topology: Topology) -> Topology:
    """Return the topology itself, or if it has patterns a copy, whose sources' topics may be set."""
    return topology.copy() if pattern_sources(topology) else topology


def match_topics(topology: Topology, names: Iterable[str]) -> Matched:
    """Return the topics whose full names match each source's pattern.

    Raises TopologyError for a topic that two patterns match: as in Kafka, one source reads a topic.
    """
    sources = pattern_sources(topology)
    matched: dict[str, list[str]] = {source.name: [] for source in sources}
    for topic in sorted(names):
        fitting = [each for each in sources if each.pattern is not None and each.pattern.fullmatch(topic)]
        if len(fitting) > 1:
            patterns = " and ".join(
                f"{each.pattern.pattern!r} of {each.name}" for each in fitting if each.pattern
            )
            raise TopologyError(
                f"topic {topic!r} matches {patterns}: one source reads a topic, so let one pattern match it"
            )
        for source in fitting:
            matched[source.name].append(topic)
    return matched


def read_topics(topology: Topology, matched: Matched) -> None:
    """Have the sources with patterns read these topics from now on."""
    for source in pattern_sources(topology):
        source.topics = tuple(matched.get(source.name, ()))
