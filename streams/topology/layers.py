"""The layers of a chart's boxes: each box is below all boxes that lead to it (Sugiyama's method, simplified).

An arrow over several layers has a point of its own in each layer in between, so that it crosses no box. Each
layer is sorted by the places of its neighbours, downward and upward in turns, which untangles most arrows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from streams.topology.chart import Chart

ROUNDS = 8
Place = tuple[int, int]
"""A layer and the order within it."""
Route = tuple[str, ...]
"""The names of an arrow's boxes and of the points in between, which are like ``a>b@2``."""


def layers_of(chart: Chart) -> tuple[list[list[str]], list[Route]]:
    """Return the names of boxes and points by layer, in their order, and each arrow's route."""
    depth = _depths(chart)
    layers: list[list[str]] = [[] for _ in range(max(depth.values(), default=0) + 1)]
    for box in chart.boxes:
        layers[depth[box.name]].append(box.name)
    routes: list[Route] = []
    for above, below in chart.arrows:
        points = [f"{above}>{below}@{level}" for level in range(depth[above] + 1, depth[below])]
        for level, point in enumerate(points, depth[above] + 1):
            layers[level].append(point)
        routes.append((above, *points, below))
    _untangle(layers, routes)
    return layers, routes


def _depths(chart: Chart) -> dict[str, int]:
    """Return the length of the longest path to each box. The chart's boxes must be in topological order."""
    above: dict[str, list[str]] = {box.name: [] for box in chart.boxes}
    for upper, lower in chart.arrows:
        above[lower].append(upper)
    depth: dict[str, int] = {}
    for name, upper_ones in above.items():
        depth[name] = 1 + max((depth[each] for each in upper_ones), default=-1)
    return depth


def _untangle(layers: Sequence[list[str]], routes: Sequence[Route]) -> None:
    above: dict[str, list[str]] = {}
    below: dict[str, list[str]] = {}
    for route in routes:
        for upper, lower in pairwise(route):
            above.setdefault(lower, []).append(upper)
            below.setdefault(upper, []).append(lower)
    for turn in range(ROUNDS):
        down = turn % 2 == 0
        for layer in layers if down else reversed(layers):
            place = {name: number for each in layers for number, name in enumerate(each)}
            _sort(layer, above if down else below, place)


def _sort(layer: list[str], neighbours: Mapping[str, list[str]], place: Mapping[str, int]) -> None:
    """Sort a layer by the mean place of each name's neighbours; a name without any keeps its place."""

    def mean(name: str) -> float:
        near = neighbours.get(name)
        return place[name] if not near else sum(place[each] for each in near) / len(near)

    layer.sort(key=mean)
