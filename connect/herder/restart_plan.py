"""RestartPlan: which parts of a connector one request restarts (KIP-745)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_FAILED, _RESTARTING = "FAILED", "RESTARTING"


@dataclass(frozen=True, slots=True)
class RestartPlan:
    """The parts of a connector to restart, and its status when the restart begins."""

    connector: bool
    """True if the connector itself is restarted."""
    tasks: list[int] = field(default_factory=list)
    status: Mapping[str, Any] = field(default_factory=dict)
    """The status document, with RESTARTING for each part that is restarted."""

    @classmethod
    def of(cls, status: Mapping[str, Any], *, include_tasks: bool, only_failed: bool) -> RestartPlan:
        """Return the plan for a connector with this status document."""
        connector = not only_failed or status["connector"]["state"] == _FAILED
        tasks = [
            task["id"]
            for task in status["tasks"]
            if include_tasks and (not only_failed or task["state"] == _FAILED)
        ]
        shown = {
            **status,
            "connector": _restarting(status["connector"]) if connector else status["connector"],
            "tasks": [_restarting(task) if task["id"] in tasks else task for task in status["tasks"]],
        }
        return cls(connector, tasks, shown)


def _restarting(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**{key: value for key, value in row.items() if key != "trace"}, "state": _RESTARTING}
