"""What a sub-topology behind repartition topics depends on: the topics that are read above it."""

from __future__ import annotations

from collections.abc import Mapping

from streams.graph import SourceNode
from streams.topology.topology import Topology


def sources_upstream(topology: Topology) -> dict[int, dict[str, SourceNode]]:
    """By number of the sub-topology: the topics, as the topology names them, that are read by those which
    write its repartition topics, and by those above them, each with the node that reads it.
    """
    parts = topology.with_tasks
    writers: dict[str, list[int]] = {}
    for part in parts:
        for sink in part.sinks:
            if sink.internal and sink.topic is not None:
                writers.setdefault(sink.topic, []).append(part.id)
    direct = {
        part.id: {writer for topic in part.topics for writer in writers.get(topic, ())} for part in parts
    }
    sources = {part.id: {topic: each for each in part.sources for topic in each.topics} for part in parts}
    return {part.id: _united(sources, _above(direct, part.id)) for part in parts}


def _above(direct: Mapping[int, set[int]], id: int) -> set[int]:
    """All that are above a sub-topology."""
    found: set[int] = set()
    waiting = [id]
    while waiting:
        for each in direct[waiting.pop()] - found:
            found.add(each)
            waiting.append(each)
    return found


def _united(sources: Mapping[int, Mapping[str, SourceNode]], ids: set[int]) -> dict[str, SourceNode]:
    return {topic: node for id in sorted(ids) for topic, node in sources[id].items()}
