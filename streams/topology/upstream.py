"""The source topics on which a sub-topology depends through repartition topics."""

from __future__ import annotations

from collections.abc import Mapping

from streams.graph import SourceNode
from streams.topology.topology import Topology


def sources_upstream(topology: Topology) -> dict[int, dict[str, SourceNode]]:
    """Return each sub-topology's upstream topics with the nodes that read them, by the sub-topology's number.

    They are the source topics of the sub-topologies that write its repartition topics, directly or through
    further ones, by the topology's names.
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
    """Return the numbers of all sub-topologies above one, directly or through others."""
    above: set[int] = set()
    waiting = [id]
    while waiting:
        for each in direct[waiting.pop()] - above:
            above.add(each)
            waiting.append(each)
    return above


def _united(sources: Mapping[int, Mapping[str, SourceNode]], ids: set[int]) -> dict[str, SourceNode]:
    return {topic: node for id in sorted(ids) for topic, node in sources[id].items()}
