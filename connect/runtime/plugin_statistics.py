"""Statistics of a plugin's task, read when metrics are requested; an error in them is only logged."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import Protocol

from kafka_client.metrics.metrics import Values

_log = logging.getLogger(__name__)
_WAIT_SECONDS = 0.5
"""How long one read may wait for a plugin that hangs; the event loop stands still for that time."""


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
        self._values: Values = {}
        self._reading: threading.Thread | None = None

    def read(self) -> Values:
        """Return the numbers by name. If the plugin raises, return none and log one warning.

        A call that hangs is waited for once. Until it returns, the numbers are those of the call before.
        """
        if self._reading is None or not self._reading.is_alive():
            self._reading = threading.Thread(
                target=self._refresh, name=f"{self._name}-statistics", daemon=True
            )
            self._reading.start()
            self._reading.join(_WAIT_SECONDS)
            if self._reading.is_alive():
                _log.warning("%s: its plugin's statistics() does not return", self._name)
        return self._values

    def _refresh(self) -> None:
        try:
            self._values = {str(name): float(value) for name, value in self._task.statistics().items()}
        except BaseException as error:
            self._values = {}
            if not self._has_failed:
                self._has_failed = True
                _log.warning("%s: its plugin's statistics() failed: %r", self._name, error)
