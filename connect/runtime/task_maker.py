"""TaskMaker: makes one task of a connector, with what of it is the plugin's in a thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from connect.errors import ConfigError
from connect.herder import TaskRun
from connect.runtime.calls import PluginCalls
from connect.runtime.connector_check import CheckedConfig
from connect.runtime.isolation.isolation_check import is_isolated
from connect.runtime.isolation.process_task import ProcessTask, process_place
from connect.runtime.plugin_task import make_plugin_task
from connect.runtime.task import TaskSetting, WorkerTask
from connect.runtime.tasks_max import TasksMax
from connect.runtime.unmade_task import UnmadeTask
from connect.runtime.worker_parts import WorkerParts
from kafka_client import Admin


class TaskMaker:
    """The making of one task, to be launched by the caller. Call `make`, then `calls.close`."""

    def __init__(
        self, parts: WorkerParts, checked: CheckedConfig, number: int, on_change: Callable[[], None]
    ) -> None:
        self.number = number
        self.calls = PluginCalls(f"{checked.name}-{number}-maker")
        """The calls of config providers and of the plugin's constructor."""
        self.ttl: int | None = None
        """Milliseconds until a value of the task's configs expires; None if none does."""
        self._parts = parts
        self._checked = checked
        self._on_change = on_change

    async def make(self, run: TaskRun, check_abandoned: Callable[[], None]) -> WorkerTask:
        """Return the task. One that cannot be made is a task that fails with the reason, at its launch."""
        resolve = self._parts.config.providers.resolve_expiring
        try:
            own = await self.calls.call(resolve, run.config)
            connectors = await self.calls.call(resolve, run.connector_config)
            self.ttl = min((each.ttl for each in (own, connectors) if each.ttl is not None), default=None)
            setting = self._setting(own.config, connectors.config)
        except ConfigError as e:  # of a variable
            return UnmadeTask(self._setting({}, {}), e, on_change=self._on_change)
        try:
            check_abandoned()
            TasksMax.of(setting.connector_config).check(self._checked.name, run.task_count)
            return await self._made(setting)
        except Exception as e:
            return UnmadeTask(setting, e, on_change=self._on_change)

    async def _made(self, setting: TaskSetting) -> WorkerTask:
        parts, plugin = self._parts, self._checked.plugin
        if is_isolated(setting.worker, setting.connector_config):
            place = process_place(plugin)
            if parts.new_process_task is not None:
                return parts.new_process_task(setting, place, self._on_change)
            return ProcessTask(setting, parts.store, place=place, on_change=self._on_change)
        task: object = await self.calls.call(plugin.task_class)
        return make_plugin_task(
            setting,
            plugin,
            task,
            parts.store,
            on_change=self._on_change,
            new_source_task=parts.new_source_task,
        )

    def _setting(self, config: Mapping[str, str], connector_config: Mapping[str, str]) -> TaskSetting:
        parts, checked = self._parts, self._checked
        clients, is_sink = parts.clients, checked.type == "sink"
        return TaskSetting(
            connector=checked.name,
            task_id=self.number,
            config=config,
            connector_config=connector_config,
            worker=parts.config,
            client=clients.of(checked.type, connector_config),
            admin=Admin(clients.admin(connector_config)),
            dead_letter_client=clients.dead_letters(connector_config) if is_sink else None,
            startups=parts.startings.tasks,
            note_topic=partial(parts.note_topic, checked.name, self.number),
        )
