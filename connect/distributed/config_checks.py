"""ConfigChecks: checks of the configs that a worker has read, in the background.

A check imports the plugin and runs its code, so it may take long, or never return. Heartbeats and the REST
interface go on meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from connect.herder.config_state import Properties
from connect.runtime.checked_configs import CheckedConfigs
from connect.runtime.connector_check import CheckedConfig

_log = logging.getLogger(__name__)
SLOW_SECONDS = 10.0
"""After this time a check is reported as one that may never return."""


class ConfigChecks:
    """The checks under way, one for each connector and config.

    `on_end` is called with a connector's name, its config and the result, or the error. `on_slow` is called
    with the name, the config and what to tell about a check that has not returned for SLOW_SECONDS.
    """

    def __init__(
        self,
        configs: CheckedConfigs,
        on_end: Callable[[str, Properties, CheckedConfig | Exception], None],
        on_slow: Callable[[str, Properties, str], None],
    ) -> None:
        self._configs = configs
        self._on_end = on_end
        self._on_slow = on_slow
        self._running: dict[str, tuple[Properties, asyncio.Task[None]]] = {}
        """The newest check of each connector."""
        self._tasks: set[asyncio.Task[None]] = set()

    def passed(self, name: str, config: Properties) -> CheckedConfig | None:
        """Return the checked config if it has passed. Otherwise return None, and have it checked."""
        checked = self._configs.passed(config)
        if checked is None and (name not in self._running or self._running[name][0] != config):
            task = asyncio.create_task(self._check(name, config), name=f"check of {name}")
            self._running[name] = config, task
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return checked

    async def close(self) -> None:
        """End what waits for checks; those that never return keep only their threads."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _check(self, name: str, config: Properties) -> None:
        result: CheckedConfig | Exception
        try:
            result = await self._patiently(name, config)
        except Exception as e:
            result = e
        if self._running.get(name, (None, None))[1] is asyncio.current_task():
            del self._running[name]
        self._on_end(name, config, result)

    async def _patiently(self, name: str, config: Properties) -> CheckedConfig:
        checking = asyncio.ensure_future(self._configs.check(config))
        try:
            _, late = await asyncio.wait({checking}, timeout=SLOW_SECONDS)
            if late:
                problem = (
                    f"the config's check has not returned for {SLOW_SECONDS:g} s: the import or a check of "
                    f"{config.get('connector.class')}, or a config provider, takes long or hangs"
                )
                _log.warning("%s: %s", name, problem)
                self._on_slow(name, config, problem)
            return await checking
        finally:
            checking.cancel()
