"""UnmadeTask: takes the place of a task that could not be made, and fails with the reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from connect.runtime.task import TaskSetting, WorkerTask
from kafka_client.metrics.metrics import Values


class UnmadeTask(WorkerTask):
    """A task that fails as soon as it is launched."""

    def __init__(
        self, setting: TaskSetting, error: Exception, *, on_change: Callable[[], None] = lambda: None
    ) -> None:
        super().__init__(setting, on_change=on_change)
        self._error = error

    def statistics(self) -> dict[str, Any]:
        """Return no counts."""
        return {}

    def plugin_values(self) -> Values:
        """Return no statistics: there is no plugin's task."""
        return {}

    async def _start(self) -> None:
        raise self._error

    async def _work(self) -> None:
        """Do nothing: no work follows a start that fails."""

    async def _finish(self) -> None:
        """Do nothing: no finish follows a start that fails."""

    async def _stop(self) -> None:
        """Do nothing: there is nothing to close."""
