"""Loads: the units of each worker, while an assignment is made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from connect.group.units import Unit

Loads: TypeAlias = dict[str, list[Unit]]
"""The units of each worker, by its member id."""


def of_kind(units: Iterable[Unit], *, connectors: bool) -> list[Unit]:
    """Return the connectors among units, or the tasks."""
    return [unit for unit in units if unit.is_connector == connectors]


def add(loads: Loads, more: Mapping[str, Iterable[Unit]]) -> None:
    """Add units to loads, none twice to one worker."""
    for worker, units in more.items():
        load = loads.setdefault(worker, [])
        load += [unit for unit in units if unit not in load]


def without(loads: Mapping[str, Sequence[Unit]], removed: Mapping[str, Iterable[Unit]]) -> Loads:
    """Return loads without some units of each worker."""
    ending = {worker: set(units) for worker, units in removed.items()}
    return {
        worker: [unit for unit in units if unit not in ending.get(worker, ())]
        for worker, units in loads.items()
    }


def place(loads: Loads, units: Sequence[Unit], *, connectors: bool) -> None:
    """Assign units round robin to the workers with the fewest connectors, or tasks."""
    counts = {worker: len(of_kind(load, connectors=connectors)) for worker, load in loads.items()}
    workers = sorted(loads, key=lambda worker: (counts[worker], worker))
    remaining = iter(units)
    unit = next(remaining, None)
    while unit is not None:
        least = counts[workers[0]]
        for worker in [worker for worker in workers if counts[worker] <= least]:
            loads[worker].append(unit)
            counts[worker] += 1
            unit = next(remaining, None)
            if unit is None:
                break


def surplus(loads: Loads, total: int, *, connectors: bool) -> Loads:
    """Return what each worker has beyond its share of `total` connectors, or tasks; nothing if balanced."""
    loads = {worker: of_kind(load, connectors=connectors) for worker, load in loads.items()}
    least, workers_with_one_more = divmod(total, len(loads))
    counts = [len(load) for load in loads.values()]
    if counts.count(least + 1) == workers_with_one_more and set(counts) <= {least, least + 1}:
        return {}
    excess: Loads = {}
    for worker, load in loads.items():
        if len(load) <= least:
            continue
        share = least
        if workers_with_one_more > 0:
            workers_with_one_more -= 1
            share += 1
        if len(load) > share:
            excess[worker] = load[: len(load) - share]
    return excess
