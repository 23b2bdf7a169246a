"""Calls of a plugin that did not return before the run that made them ended."""

from __future__ import annotations

from collections.abc import Iterable

from connect.errors import ConnectError
from connect.runtime.calls import PluginCalls

ABANDONED_MAX = 16
"""Bound of a connector's earlier runs with calls that do not return; beyond it nothing is started."""


class AbandonedCalls:
    """The earlier runs of one connector and its tasks that have calls without return."""

    def __init__(self, connector: str) -> None:
        self._connector = connector
        self._runs: list[PluginCalls] = []

    def add(self, ended: Iterable[PluginCalls]) -> None:
        """Add the calls of runs that have ended, if they have calls without return."""
        self._runs = [run for run in (*self._runs, *ended) if run.statistics()["calls"]]

    @property
    def count(self) -> int:
        """The number of earlier runs that have calls without return."""
        self.add(())
        return len(self._runs)

    def check(self) -> None:
        """Raise ConnectError if there are more than ABANDONED_MAX."""
        if (count := self.count) > ABANDONED_MAX:
            raise ConnectError(
                f"{self._connector}: calls of {count} earlier runs have not returned: the plugin "
                "hangs; restart the worker once that is mended"
            )
