"""A topology as a Mermaid flowchart, which GitHub, GitLab and many editors draw."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streams.topology.chart import Box, chart
from streams.topology.subtopology import Subtopology

_EDGES = {"topic": ("([", "])"), "source": ("[/", "/]"), "processor": ("[", "]"), "sink": ("[\\", "\\]")}


def mermaid(subtopologies: Iterable[Subtopology]) -> str:
    """Return the text of the flowchart: a subgraph per sub-topology, and stores linked to their users."""
    return "".join(f"{line}\n" for line in ["flowchart TD", *_lines(subtopologies)])


def _lines(subtopologies: Iterable[Subtopology]) -> Iterator[str]:
    for number, subtopology in enumerate(subtopologies):
        drawn = chart(subtopology)
        ids = {box.name: f"n{number}_{place}" for place, box in enumerate(drawn.boxes)}
        stores = list(dict.fromkeys(store for box in drawn.boxes for store in box.stores))
        yield f'    subgraph s{number}["{drawn.title}"]'
        yield from (f"        {ids[box.name]}{_box(box)}" for box in drawn.boxes)
        yield from (f"        {ids[above]} --> {ids[below]}" for above, below in drawn.arrows)
        for place, store in enumerate(stores):
            yield f"        s{number}_{place}[({_quoted(store)})]"
            users = (ids[box.name] for box in drawn.boxes if store in box.stores)
            yield from (f"        {user} -.- s{number}_{place}" for user in users)
        yield "    end"


def _box(box: Box) -> str:
    before, after = _EDGES[box.shape]
    return f"{before}{_quoted(box.label)}{after}"


def _quoted(text: str) -> str:
    escaped = text.replace("&", "#amp;").replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")
    return f'"{escaped}"'
