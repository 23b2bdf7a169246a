"""`make_plugin_task`: a plugin's task, and the worker's task that runs it."""

from __future__ import annotations

from collections.abc import Callable

from connect.api.batch_source import BatchSourceTask
from connect.api.columnar_sink import ColumnarSinkTask
from connect.api.range_sink import RangeSinkTask
from connect.api.sink import SinkTask
from connect.api.source import SourceTask
from connect.errors import ConfigError
from connect.runtime.batch_source_task import WorkerBatchSourceTask
from connect.runtime.columnar_sink_task import WorkerColumnarSinkTask
from connect.runtime.plugins import ConnectorClass, connector_type
from connect.runtime.range_task import WorkerRangeTask
from connect.runtime.sink_task import WorkerSinkTask
from connect.runtime.source_task import WorkerSourceTask
from connect.runtime.task import TaskSetting, WorkerTask
from connect.stores import OffsetStore

NewSourceTask = Callable[[TaskSetting, SourceTask | BatchSourceTask, Callable[[], None]], WorkerTask]
"""Makes the worker's task for a plugin's source task, and for a listener to changes of its state."""


def source_task(
    setting: TaskSetting,
    task: SourceTask | BatchSourceTask,
    store: OffsetStore,
    *,
    on_change: Callable[[], None],
) -> WorkerSourceTask:
    """Return the worker's task that runs a plugin's source task without transactions."""
    made = WorkerBatchSourceTask if isinstance(task, BatchSourceTask) else WorkerSourceTask
    return made(setting, task, store, on_change=on_change)


def make_plugin_task(
    setting: TaskSetting,
    plugin: ConnectorClass,
    task: object,
    store: OffsetStore,
    *,
    on_change: Callable[[], None],
    new_source_task: NewSourceTask | None = None,
) -> WorkerTask:
    """Return the worker's task that runs `task`, an object of `plugin.task_class`, in this process.

    `new_source_task` makes a source's task, if it is not to be a plain `source_task`.
    Raises ConfigError if the plugin's task is not of the connector's kind.
    """
    role = connector_type(plugin)
    made: WorkerTask
    match role, task:
        case "source", SourceTask() | BatchSourceTask() if new_source_task is not None:
            made = new_source_task(setting, task, on_change)
        case "source", SourceTask() | BatchSourceTask():
            made = source_task(setting, task, store, on_change=on_change)
        case "sink", ColumnarSinkTask():
            made = WorkerColumnarSinkTask(setting, task, on_change=on_change)
        case "sink", SinkTask():
            made = WorkerSinkTask(setting, task, on_change=on_change)
        case "sink", RangeSinkTask():
            made = WorkerRangeTask(setting, task, on_change=on_change)
        case _:
            raise ConfigError("connector.class", plugin.__name__, f"its task_class is no {role} task")
    made.plugin_version = plugin.VERSION
    return made
