"""Requests to all workers that come through the config topic: restarts of connectors, levels of loggers.

They are events, not state. Those that a worker reads while it starts are of another time: it takes them, and
does nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class RestartRequest:
    """A request to restart a connector (KIP-745)."""

    connector: str
    only_failed: bool = False
    """Restart only what has failed."""
    include_tasks: bool = False
    """Restart the connector's tasks, too."""

    @property
    def impact(self) -> int:
        """The more this restarts, the higher: the order that Kafka's RestartRequest has."""
        return (0 if self.only_failed else 2) + (1 if self.include_tasks else 0)

    def value(self) -> dict[str, Any]:
        """Return the value of the config topic's record."""
        return {"include-tasks": self.include_tasks, "only-failed": self.only_failed}


class Requests:
    """The requests that nobody has taken yet: one a connector, one a logger."""

    def __init__(self) -> None:
        self._restarts: dict[str, RestartRequest] = {}
        self._levels: dict[str, str] = {}

    def add_restart(self, connector: str, value: Mapping[str, Any] | None) -> None:
        """Add a request; of two for one connector the one that restarts more stays."""
        if not isinstance(value, Mapping):
            raise ValueError("a restart request is no mapping")
        request = RestartRequest(connector, _flag(value, "only-failed"), _flag(value, "include-tasks"))
        other = self._restarts.get(connector)
        if other is None or request.impact >= other.impact:
            self._restarts[connector] = request

    def add_logger_level(self, logger: str, value: Mapping[str, Any] | None) -> None:
        """Add a request; of two for one logger the last one stays."""
        level = None if value is None else value["level"]
        if not isinstance(level, str):
            raise ValueError(f"the level is no text: {level!r}")
        self._levels.pop(logger, None)
        self._levels[logger] = level

    def take_restarts(self) -> list[RestartRequest]:
        """Return the requests to restart connectors, and forget them."""
        restarts, self._restarts = self._restarts, {}
        return list(restarts.values())

    def take_logger_levels(self) -> dict[str, str]:
        """Return the levels that loggers should have, in the order of the requests, and forget them."""
        levels, self._levels = self._levels, {}
        return levels


def _flag(value: Mapping[str, Any], name: str) -> bool:
    """Return a flag; what is no boolean is False, as Kafka's default."""
    return value.get(name) is True
