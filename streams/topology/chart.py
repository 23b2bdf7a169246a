"""The boxes and arrows of a sub-topology's picture: its nodes, with their topics and stores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from streams.graph import ProcessorNode, SinkNode, SourceNode
from streams.topology.describe import chooser_of
from streams.topology.subtopology import Subtopology

Shape = Literal["topic", "source", "processor", "sink"]


@dataclass(frozen=True, slots=True)
class Box:
    """A box to draw: its `name` is unique in a chart; `label` and `stores` are its text."""

    name: str
    label: str
    shape: Shape
    stores: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Chart:
    """The boxes, in the order in which data reaches them, and the arrows, by the boxes' names."""

    title: str
    boxes: tuple[Box, ...]
    arrows: tuple[tuple[str, str], ...]


def chart(subtopology: Subtopology) -> Chart:
    """Return the chart of a sub-topology; a topic that is read and written has two boxes."""
    boxes: dict[str, Box] = {}
    arrows: dict[tuple[str, str], None] = {}
    for box, arrow in _parts(subtopology):
        if box is not None:
            boxes.setdefault(box.name, box)
        if arrow is not None:
            arrows[arrow] = None
    return Chart(f"Sub-topology {subtopology.id}", tuple(boxes.values()), tuple(arrows))


def _parts(subtopology: Subtopology) -> Iterator[tuple[Box | None, tuple[str, str] | None]]:
    for node in subtopology.nodes:
        if isinstance(node, SourceNode):
            for topic in node.topics if node.pattern is None else (node.pattern.pattern,):
                yield Box(f"read {topic}", topic, "topic"), (f"read {topic}", node.name)
            yield Box(node.name, node.name, "source"), None
        elif isinstance(node, ProcessorNode):
            yield Box(node.name, node.name, "processor", tuple(node.stores)), None
        elif isinstance(node, SinkNode):
            target = node.topic if node.choose_topic is None else f"chosen by {chooser_of(node)}"
            yield Box(node.name, node.name, "sink"), None
            yield Box(f"written {target}", str(target), "topic"), (node.name, f"written {target}")
        for child in node.children:
            yield None, (node.name, child)
