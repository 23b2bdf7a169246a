"""PlacementFacts: what a leader knows of workers, connectors and loads when it places tasks by load."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from connect.config.placement import PlacementConfig
from connect.group import Unit, WorkerState
from connect.group.load_report import LoadReport
from connect.group.placement import Facts, Rule
from connect.herder.config_state import Properties


class PlacementFacts:
    """The facts of a leader. It remembers loads: a task that has moved is not measured at once."""

    def __init__(self) -> None:
        self._costs: dict[Unit, float] = {}

    def update(
        self, states: Mapping[str, WorkerState], units: Iterable[Unit], connectors: Mapping[str, Properties]
    ) -> Facts:
        """Return the facts for a round: `states` by member id, all units, all connectors' configs."""
        reports = {member: LoadReport.decode(state.report) for member, state in states.items()}
        for report in reports.values():
            self._costs.update(report.costs)
        existing = set(units)
        self._costs = {unit: cost for unit, cost in self._costs.items() if unit in existing}
        return Facts(
            names={member: _names(state.url, reports[member]) for member, state in states.items()},
            rules=rules_of(connectors),
            costs=dict(self._costs),
        )


def rules_of(connectors: Mapping[str, Properties]) -> dict[str, Rule]:
    """Return the rules of the connectors that have one; a value that is not valid is none."""
    rules = {}
    for name, config in connectors.items():
        wishes = PlacementConfig.examine(config)[0]
        if wishes.placement_pin or wishes.placement_spread:
            rules[name] = Rule(pin=tuple(wishes.placement_pin), spread=wishes.placement_spread)
    return rules


def _names(url: str, report: LoadReport) -> frozenset[str]:
    address = urlsplit(url)
    return frozenset((address.netloc, address.hostname or "", *report.labels))
