"""What a plugin's task tells of itself, read when somebody asks for metrics; mistakes in it harm nobody."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Protocol

from kafka_client.metrics.metrics import Values

_log = logging.getLogger(__name__)


class TellingTask(Protocol):
    """A plugin's task of any kind."""

    def statistics(self) -> Mapping[str, float]:
        """See `SourceTask.statistics`."""


class PluginStatistics:
    """Of one task, called `name` in the log."""

    def __init__(self, name: str, task: TellingTask) -> None:
        self._name = name
        self._task = task
        self._has_failed = False

    def read(self) -> Values:
        """The numbers by name; none, and once a warning, where the plugin fails to tell."""
        try:
            return {str(name): float(value) for name, value in self._task.statistics().items()}
        except Exception as error:
            if not self._has_failed:
                self._has_failed = True
                _log.warning("%s: its plugin's statistics() failed: %r", self._name, error)
            return {}
