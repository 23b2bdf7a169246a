"""ConnectorRunner: one start of a plugin's connector object, up to its stop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from connect.api.sink import SinkConnector
from connect.api.source import ConnectorContext, SourceConnector
from connect.config.providers import ConfigProviders, restored
from connect.herder import ConnectorRun
from connect.runtime.calls import PluginCalls
from connect.runtime.connector_check import CheckedConfig
from connect.runtime.task_plan import TASK_CLASS, check_plan, task_class_name
from connect.runtime.tasks_max import TasksMax

_log = logging.getLogger(__name__)


class ConnectorRunner:
    """A plugin's connector object. Call `start`, `plan` as often as needed, then `stop`."""

    def __init__(
        self,
        checked: CheckedConfig,
        run: ConnectorRun,
        request_plan: Callable[[], None],
        providers: ConfigProviders,
    ) -> None:
        """Make a runner. `request_plan` is called on the loop when the plugin asks for another plan."""
        self.run = run
        self._providers = providers
        self._resolved: dict[str, str] = {}
        self.ttl: int | None = None
        """Milliseconds from the start until a value of the config expires; None if none does."""
        self.calls = PluginCalls(checked.name)
        self._checked = checked
        self._request_plan = request_plan
        self._connector: SourceConnector | SinkConnector | None = None

    @property
    def version(self) -> str:
        """The version of the plugin that runs."""
        return self._checked.plugin.VERSION

    async def start(self) -> None:
        """Create and start the plugin's connector, with the values of its config's variables.

        Raises what the plugin raises, and ConfigError for a variable that cannot be looked up.
        """
        loop = asyncio.get_running_loop()
        context = ConnectorContext(
            connector=self._checked.name,
            request_task_reconfiguration=lambda: _call_soon(loop, self._request_plan),
        )
        resolved = await self.calls.call(self._providers.resolve_expiring, self.run.config)
        self._resolved, self.ttl = resolved.config, resolved.ttl
        connector: SourceConnector | SinkConnector = await self.calls.call(self._checked.plugin)
        self._connector = connector
        connector.context = context
        await self.calls.call(connector.start, dict(self._resolved))

    async def plan(self) -> list[dict[str, str]]:
        """Return the task configs that the plugin plans, with the connector's variables in place.

        Each names its `task.class`, as Kafka's do. Raises ConnectError for more than `tasks.max` allows,
        and TypeError if they are no list of mappings from texts to texts.
        """
        assert self._connector is not None
        tasks_max = TasksMax.of(self._resolved)
        configs: list[dict[str, str]] = await self.calls.call(self._connector.task_configs, tasks_max.count)
        check_plan(configs, self._checked.name, tasks_max)
        named = {TASK_CLASS: task_class_name(self.run.config["connector.class"], self._checked.plugin)}
        return [{**config, **named} for config in restored(self.run.config, self._resolved, configs)]

    async def stop(self, grace_seconds: float) -> None:
        """Stop the plugin's connector. A stop that fails or takes too long is logged and abandoned."""
        if self._connector is not None:
            try:
                async with asyncio.timeout(grace_seconds):
                    await self.calls.call(self._connector.stop)
            except Exception as e:
                _log.warning("%s did not stop cleanly: %r", self._checked.name, e)
        self.calls.close()


def _call_soon(loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(function)
