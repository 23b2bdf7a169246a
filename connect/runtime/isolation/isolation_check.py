"""The check of `task.isolation`: what a task in a process of its own cannot do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from connect.api.source import SourceConnector
from connect.errors import ConfigError
from connect.runtime.plugins import ConnectorClass
from connect.runtime.worker_config import WorkerConfig

ISOLATION, OFFSETS_TOPIC = "task.isolation", "offsets.storage.topic"


def is_isolated(worker: WorkerConfig, config: Mapping[str, Any]) -> bool:
    """Return True if the tasks of a connector are to run in processes of their own."""
    return str(config.get(ISOLATION) or worker.task_isolation) == "process"


def isolation_errors(
    worker: WorkerConfig, plugin: ConnectorClass, config: Mapping[str, Any]
) -> Iterator[ConfigError]:
    """Yield the errors of a source whose tasks need more of the worker than the pipe to a process carries."""
    if not is_isolated(worker, config) or not issubclass(plugin, SourceConnector):
        return
    if worker.exactly_once_source_enabled:
        yield ConfigError(
            ISOLATION,
            "process",
            "exactly-once sources run in the worker's own process: set task.isolation=thread, or run the "
            "connector in a group of workers with exactly.once.source.support=disabled",
        )
    if config.get(OFFSETS_TOPIC):
        yield ConfigError(
            OFFSETS_TOPIC,
            config[OFFSETS_TOPIC],
            "a task in a process of its own keeps its offsets in the worker's topic: leave the setting out, "
            "or set task.isolation=thread",
        )
