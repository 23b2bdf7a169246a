"""CheckedConfigs: the last config of each connector that passed the check."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

from connect.runtime.blocking_calls import BlockingCalls
from connect.runtime.connector_check import CheckedConfig, check_config
from connect.runtime.plugins import reload_plugins
from connect.runtime.worker_config import WorkerConfig

CHECKS_MAX = 16
"""Bound of the checks in threads that have not returned; further ones wait."""


class CheckedConfigs:
    """Checks connectors' configs, each once: a config that has passed is not checked again.

    A check runs code of plugins and config providers, which may never return. So it runs in a thread.
    """

    def __init__(self, worker: WorkerConfig) -> None:
        self._worker = worker
        self._checked: dict[str, CheckedConfig] = {}
        self._stale: dict[str, object] = {}
        """The connectors of which there may be another version of the plugin by now; a token of each time."""
        self._calls = BlockingCalls("connector check", threads_max=CHECKS_MAX)

    def passed(self, raw: Mapping[str, Any]) -> CheckedConfig | None:
        """Return the checked config if it has passed, and None if it has to be checked first."""
        name = str(raw.get("name"))
        checked = self._checked.get(name)
        return checked if checked is not None and checked.config == raw and name not in self._stale else None

    async def check(self, raw: Mapping[str, Any]) -> CheckedConfig:
        """Return the checked config, without blocking while a plugin does.

        Raises ConfigError or NotFound if it is not valid; what passed before stays.
        """
        if (passed := self.passed(raw)) is not None:
            return passed
        name = str(raw.get("name"))
        stale = self._stale.get(name)
        checked = await self._calls.call(self._check if stale is None else self._check_anew, raw)
        self._checked[name] = checked
        if self._stale.get(name) is stale:
            self._stale.pop(name, None)
        return checked

    def expect_upgrade(self, name: str) -> None:
        """Have a connector's config checked again, by the plugin that there is then."""
        self._stale[name] = object()

    def forget(self, name: str) -> None:
        """Forget a connector that has been deleted."""
        self._checked.pop(name, None)
        self._stale.pop(name, None)

    def retain(self, names: Container[str]) -> None:
        """Forget the configs of all other connectors."""
        self._checked = {name: each for name, each in self._checked.items() if name in names}
        self._stale = {name: token for name, token in self._stale.items() if name in names}

    def _check(self, raw: Mapping[str, Any]) -> CheckedConfig:
        return check_config(self._worker, raw)

    def _check_anew(self, raw: Mapping[str, Any]) -> CheckedConfig:
        reload_plugins()
        return self._check(raw)
