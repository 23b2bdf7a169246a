"""LoadMeter: the load of a worker's tasks, measured between two looks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from connect.group import Unit

BYTES_OF_A_CORE = 50e6
"""Bytes per second that count as much as a whole core: what a task moves loads the network and the loop."""
_SECONDS_MIN = 10.0
"""The shortest time that is measured: the rounds of one rebalance are closer together."""


class Usage(NamedTuple):
    """The resources that a task has used since it began."""

    cpu_seconds: float
    """Time of its thread."""
    byte_count: int
    """Bytes of keys and values."""


class LoadMeter:
    """The loads of tasks in cores. `clock` returns monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._usages: dict[tuple[Unit, int], tuple[float, Usage]] = {}
        self._costs: dict[tuple[Unit, int], float] = {}

    def measure(self, tasks: Iterable[tuple[Unit, int, Usage]]) -> Mapping[Unit, float]:
        """Return the loads of the running tasks that have been measured for long enough.

        Each is a unit, a number that another run of it does not have, and its usage.
        """
        now = self._clock()
        running = {(unit, run): usage for unit, run, usage in tasks}
        for key, usage in running.items():
            since, before = self._usages.setdefault(key, (now, usage))
            seconds = now - since
            if seconds >= _SECONDS_MIN:
                moved = (usage.byte_count - before.byte_count) / BYTES_OF_A_CORE
                self._costs[key] = (usage.cpu_seconds - before.cpu_seconds + moved) / seconds
                self._usages[key] = now, usage
        self._usages = {key: each for key, each in self._usages.items() if key in running}
        self._costs = {key: cost for key, cost in self._costs.items() if key in running}
        return {unit: cost for (unit, _), cost in self._costs.items()}
