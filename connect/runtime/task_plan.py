"""The task configs that a plugin plans: their check, and the class of the tasks that they name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connect.runtime.plugin_results import kind_of
from connect.runtime.plugins import ConnectorClass
from connect.runtime.tasks_max import TasksMax

TASK_CLASS = "task.class"
"""The key by which a task config in the config topic names what runs it; Java's workers need it there."""
_KAFKAS = "org.apache.kafka.connect."


def check_plan(configs: Any, connector: str, tasks_max: TasksMax) -> None:
    """Return if a plugin's task configs can be stored.

    Raises ConnectError for more than `tasks_max` allows, TypeError for what is no list of mappings from texts
    to texts.
    """
    if not isinstance(configs, (list, tuple)):
        raise TypeError(f"task_configs of {connector} returned {kind_of(configs)}; a list of dicts is needed")
    tasks_max.check(connector, len(configs))
    for number, config in enumerate(configs):
        if not isinstance(config, Mapping):
            raise TypeError(
                f"task_configs of {connector}: the config of task {number} is {kind_of(config)}, no dict"
            )
        for key, value in config.items():
            if not (isinstance(key, str) and isinstance(value, str)):
                # The value may be a secret.
                raise TypeError(
                    f"task_configs of {connector}: key {key!r} of task {number} has {kind_of(value)}; "
                    "keys and values must be of type str"
                )


def task_class_name(connector: str, plugin: ConnectorClass) -> str:
    """Return the name of a plugin's task class: Kafka's own if the connector goes by Kafka's name."""
    if connector.startswith(_KAFKAS) and connector.endswith("Connector"):
        return connector.removesuffix("Connector") + "Task"
    task: Any = getattr(plugin, "task_class", None)
    return f"{task.__module__}:{task.__qualname__}" if isinstance(task, type) else repr(task)
