"""Texts of Kafka Connect's metrics, as tags of metrics whose value is always 1.

The texts of `connector-metrics` are tags of `connector-info`, those of `connector-task-metrics` of
`connector-task-info`, and so on: Prometheus' way of telling texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from connect.runtime.connector import WorkerConnector
from connect.runtime.task import WorkerTask

CONVERTERS = ("key.converter", "value.converter", "header.converter")


def connector_texts(connector: WorkerConnector) -> dict[str, str]:
    """Return class, type and version of a connector's plugin, and the connector's state."""
    return {**_plugin_texts(connector), "status": connector.status.state.value.lower()}


def task_texts(connector: WorkerConnector, task: WorkerTask) -> dict[str, str]:
    """Return the classes of a task and of what its records pass, and the task's state."""
    config = dict(task.setting.connector_config)
    plugin = connector.checked.plugin
    converters = {
        f"{which.replace('.', '-')}-class": task.setting.worker.converter_config(which, config)[0]
        for which in CONVERTERS
    }
    return {
        **_plugin_texts(connector),
        **converters,
        "task-class": _name(plugin.task_class),
        "task-version": plugin.VERSION,
        "status": task.status.state.value.lower(),
    }


def chain_texts(task: WorkerTask, noun: str) -> Iterator[Mapping[str, str]]:
    """Yield alias and class of each transform or predicate of a task; `noun` is the one or the other."""
    config = task.setting.connector_config
    for alias in filter(None, map(str.strip, str(config.get(f"{noun}s", "")).split(","))):
        yield {noun: alias, f"{noun}-class": str(config.get(f"{noun}s.{alias}.type", ""))}


def _plugin_texts(connector: WorkerConnector) -> dict[str, str]:
    plugin = connector.checked.plugin
    return {
        "connector-class": _name(plugin),
        "connector-type": connector.type,
        "connector-version": plugin.VERSION,
    }


def _name(plugin: type) -> str:
    return f"{plugin.__module__}.{plugin.__qualname__}"
