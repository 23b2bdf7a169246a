"""LoadReport: a worker's labels and its tasks' loads, for a leader that places by load.

It travels behind the fields of Kafka's protocol in the worker's state, where Kafka's workers do not read. The
status topic would bring it too late: a leader divides by what the members say as they join.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from connect.group.units import Unit


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadReport:
    """A worker's labels, and the measured loads of its tasks in cores."""

    labels: tuple[str, ...] = ()
    costs: Mapping[Unit, float] = field(default_factory=dict)

    def encode(self) -> bytes:
        """Encode the report as JSON."""
        costs: dict[str, dict[str, float]] = {}
        for unit, cost in self.costs.items():
            costs.setdefault(unit.connector, {})[str(unit.task)] = round(cost, 4)
        return json.dumps({"labels": self.labels, "costs": costs}).encode()

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Decode a report; what cannot be read is left out, since a report only improves a placement."""
        try:
            report: Any = json.loads(data) if data else {}
            costs = {
                Unit(name, int(task)): float(cost)
                for name, tasks in report.get("costs", {}).items()
                for task, cost in tasks.items()
            }
            return cls(labels=tuple(map(str, report.get("labels", ()))), costs=costs)
        except (ValueError, TypeError, AttributeError, RecursionError):
            return cls()
