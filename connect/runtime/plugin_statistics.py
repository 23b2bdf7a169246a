"""Statistics of a plugin's task, read when metrics are requested; an error in them is only logged."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Protocol

from kafka_client.metrics.metrics import Values

_log = logging.getLogger(__name__)


class TaskWithStatistics(Protocol):
    """The part of a plugin's task that is read here."""

    def statistics(self) -> Mapping[str, float]:
        """Return numbers by name; see `SourceTask.statistics`."""


class PluginStatistics:
    """The statistics of one task, called `name` in the log."""

    def __init__(self, name: str, task: TaskWithStatistics) -> None:
        self._name = name
        self._task = task
        self._has_failed = False

    def read(self) -> Values:
        """Return the numbers by name. If the plugin raises, return none and log one warning."""
        try:
            return {str(name): float(value) for name, value in self._task.statistics().items()}
        except Exception as error:
            if not self._has_failed:
                self._has_failed = True
                _log.warning("%s: its plugin's statistics() failed: %r", self._name, error)
            return {}
