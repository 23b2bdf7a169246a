"""The eager assignment of the protocol `default`: every unit again in each rebalance (before KIP-415)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import cycle

from connect.group.loads import Loads, of_kind
from connect.group.units import Unit


def assign_eagerly(configured: Iterable[Unit], members: Iterable[str]) -> Loads:
    """Return each worker's units: connectors round robin, then tasks, from the worker after the last."""
    workers = sorted(members)
    units = sorted(configured)
    loads: Loads = {worker: [] for worker in workers}
    turns = cycle(workers)
    for unit in (*of_kind(units, connectors=True), *of_kind(units, connectors=False)):
        loads[next(turns)].append(unit)
    return loads
