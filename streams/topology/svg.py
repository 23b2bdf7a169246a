"""A topology as an SVG picture without a drawing library: a frame per sub-topology, data flowing downward."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from streams.topology.chart import Box, Chart, chart
from streams.topology.layers import Route, layers_of
from streams.topology.subtopology import Subtopology

CHARACTER, PADDING, LINE = 7.3, 12.0, 17.0
GAP_X, GAP_Y, MARGIN, TITLE = 26.0, 38.0, 18.0, 30.0
POINT_WIDTH = 8.0

_STYLE = """
    text { font: 12px ui-monospace, Menlo, Consolas, monospace; fill: #1f2937; text-anchor: middle; }
    text.title { font-weight: bold; text-anchor: start; }
    text.store { fill: #92400e; }
    .frame { fill: #f9fafb; stroke: #d1d5db; }
    .topic { fill: #dbeafe; stroke: #2563eb; }
    .source, .sink { fill: #dcfce7; stroke: #16a34a; }
    .processor { fill: #ffffff; stroke: #6b7280; }
    .arrow { fill: none; stroke: #6b7280; marker-end: url(#head); }
"""
_HEAD = (
    '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0,0 L8,4 L0,8 z" fill="#6b7280"/></marker>'
)


@dataclass(frozen=True, slots=True)
class _Spot:
    """The place of a box, or of a point of an arrow: its center, and its size."""

    x: float
    y: float
    width: float
    height: float


def svg(subtopologies: Iterable[Subtopology]) -> str:
    """Return the picture as SVG text."""
    drawn: list[str] = []
    width, y = 0.0, MARGIN
    for subtopology in subtopologies:
        part, part_width, part_height = _draw(chart(subtopology))
        drawn.append(f'<g transform="translate({MARGIN:.0f},{y:.1f})">{part}</g>')
        width, y = max(width, part_width), y + part_height + MARGIN
    size = f'width="{width + 2 * MARGIN:.0f}" height="{y:.0f}"'
    parts = "\n".join(drawn)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n'
        f"<style>{_STYLE}</style>\n<defs>{_HEAD}</defs>\n{parts}\n</svg>\n"
    )


def _draw(chart: Chart) -> tuple[str, float, float]:
    """Return the SVG text of a framed sub-topology, and its width and height."""
    boxes = {box.name: box for box in chart.boxes}
    layers, routes = layers_of(chart)
    spots, width, height = _spots(layers, boxes, least=CHARACTER * len(chart.title))
    lines = [
        f'<rect class="frame" width="{width:.1f}" height="{height:.1f}" rx="8"/>',
        f'<text class="title" x="{PADDING}" y="20">{escape(chart.title)}</text>',
        *(_arrow(route, spots) for route in routes),
        *(_box(box, spots[box.name]) for box in chart.boxes),
    ]
    return "\n".join(lines), width, height


def _spots(
    layers: list[list[str]], boxes: Mapping[str, Box], *, least: float
) -> tuple[dict[str, _Spot], float, float]:
    """Return the places of boxes and points, and the width and height of all.

    Each layer is a row, centered on the widest one.
    """
    sizes = {name: _size(boxes.get(name)) for layer in layers for name in layer}
    widths = [sum(sizes[name][0] for name in layer) + GAP_X * (len(layer) - 1) for layer in layers]
    full = max([least, *widths]) + 2 * PADDING
    spots: dict[str, _Spot] = {}
    y = TITLE
    for layer, layer_width in zip(layers, widths, strict=True):
        height = max(sizes[name][1] for name in layer)
        x = (full - layer_width) / 2
        for name in layer:
            width = sizes[name][0]
            spots[name] = _Spot(x + width / 2, y + height / 2, width, sizes[name][1])
            x += width + GAP_X
        y += height + GAP_Y
    return spots, full, y - GAP_Y + PADDING


def _size(box: Box | None) -> tuple[float, float]:
    if box is None:
        return POINT_WIDTH, 0.0
    texts = [box.label, *map(_store_text, box.stores)]
    return CHARACTER * max(map(len, texts)) + 2 * PADDING, LINE * len(texts) + PADDING


def _store_text(store: str) -> str:
    return f"store {store}"


def _box(box: Box, spot: _Spot) -> str:
    left, top = spot.x - spot.width / 2, spot.y - spot.height / 2
    corner = spot.height / 2 if box.shape == "topic" else 3
    size = f'width="{spot.width:.1f}" height="{spot.height:.1f}" rx="{corner:.1f}"'
    lines = [f'<rect class="{box.shape}" x="{left:.1f}" y="{top:.1f}" {size}/>']
    for number, text in enumerate([box.label, *map(_store_text, box.stores)]):
        kind = ' class="store"' if number else ""
        y = top + PADDING / 2 + LINE * number + 12
        lines.append(f'<text{kind} x="{spot.x:.1f}" y="{y:.1f}">{escape(text)}</text>')
    return "".join(lines)


def _arrow(route: Route, spots: Mapping[str, _Spot]) -> str:
    """Return an arrow from the bottom of a box to the top of another, as curves that are vertical there."""
    first, last = spots[route[0]], spots[route[-1]]
    points = [(first.x, first.y + first.height / 2)]
    points += [(spots[name].x, spots[name].y) for name in route[1:-1]]
    points.append((last.x, last.y - last.height / 2))
    path = f"M{points[0][0]:.1f},{points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in pairwise(points):
        middle = (y0 + y1) / 2
        path += f" C{x0:.1f},{middle:.1f} {x1:.1f},{middle:.1f} {x1:.1f},{y1:.1f}"
    return f'<path class="arrow" d="{path}"/>'
