"""CheckedConfigs: the last config of each connector that passed the check."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

from connect.runtime.blocking_calls import BlockingCalls
from connect.runtime.connector_check import CheckedConfig, check_config
from connect.runtime.worker_config import WorkerConfig

CHECKS_MAX = 16
"""Bound of the checks in threads that have not returned; further ones wait."""


class CheckedConfigs:
    """Checks connectors' configs, each once: a config that has passed is not checked again."""

    def __init__(self, worker: WorkerConfig) -> None:
        self._worker = worker
        self._checked: dict[str, CheckedConfig] = {}
        self._calls = BlockingCalls("connector check", threads_max=CHECKS_MAX)

    def check(self, raw: Mapping[str, Any]) -> CheckedConfig:
        """Return the checked config. Raises ConfigError or NotFound if it is not valid."""
        name = str(raw.get("name"))
        if not self._has_passed(name, raw):
            self._checked[name] = check_config(self._worker, raw)
        return self._checked[name]

    async def check_in_thread(self, raw: Mapping[str, Any]) -> CheckedConfig:
        """Return the checked config, as `check` does, without blocking while a plugin does."""
        name = str(raw.get("name"))
        if self._has_passed(name, raw):
            return self._checked[name]
        checked = await self._calls.call(check_config, self._worker, raw)
        self._checked[name] = checked
        return checked

    def forget(self, name: str) -> None:
        """Have a connector's config checked again, by the plugin that there is then."""
        self._checked.pop(name, None)

    def retain(self, names: Container[str]) -> None:
        """Forget the configs of all other connectors."""
        self._checked = {name: each for name, each in self._checked.items() if name in names}

    def _has_passed(self, name: str, raw: Mapping[str, Any]) -> bool:
        return name in self._checked and self._checked[name].config == raw
