"""Metrics of a worker, its connectors and their tasks, under the names of Kafka Connect's.

They are read when they are requested.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial

from connect.runtime.connector import WorkerConnector
from connect.runtime.metric_texts import chain_texts, connector_texts, task_texts
from connect.runtime.states import State
from connect.runtime.task import TASK_METRICS, WorkerTask
from connect.runtime.worker_parts import Startings
from kafka_client.metrics.metrics import Metrics, Values

DOMAIN = "kafka.connect"
_SHOWN = (State.RUNNING, State.PAUSED, State.FAILED, State.UNASSIGNED, State.RESTARTING)


class WorkerMetrics:
    """Metrics of a worker and its connectors.

    `tasks` have the tasks of connectors; by default `connectors` have their tasks themselves.
    """

    def __init__(
        self,
        connectors: Mapping[str, WorkerConnector],
        startings: Startings,
        tasks: Mapping[str, WorkerConnector] | None = None,
    ) -> None:
        self._connectors = connectors
        self._startings = startings
        self._with_tasks = connectors if tasks is None else tasks

    def add_to(self, metrics: Metrics) -> Callable[[], None]:
        """Register all metrics. Return a function that removes them again."""
        registrations = ExitStack()
        registrations.callback(metrics.add_each(DOMAIN, "connect-worker-metrics", self._worker))
        for type in TASK_METRICS:
            registrations.callback(metrics.add_each(DOMAIN, type, partial(self._tasks, type)))
        registrations.callback(metrics.add_each(DOMAIN, "connector-info", self._connector_texts))
        registrations.callback(metrics.add_each(DOMAIN, "connector-task-info", self._task_texts))
        for noun in ("transform", "predicate"):
            read = partial(self._chain_texts, noun)
            registrations.callback(metrics.add_each(DOMAIN, f"connector-{noun}-info", read))
        registrations.callback(metrics.add_each(DOMAIN, "plugins", self._plugins))
        registrations.callback(metrics.add_each("millstream", "source-task-queue", self._queues))
        registrations.callback(metrics.add_each("millstream", "plugin-calls", self._calls))
        registrations.callback(metrics.add_each("millstream", "rate-limits", self._rates))
        return registrations.close

    def _worker(self) -> Iterator[tuple[Mapping[str, str], Values]]:
        connectors = list(self._connectors.values())
        yield (
            {},
            {
                "connector-count": len(connectors),
                "task-count": sum(len(each.tasks) for each in self._with_tasks.values()),
                **self._startings.connectors.values("connector"),
                **self._startings.tasks.values("task"),
            },
        )
        for connector in list(self._with_tasks.values()):
            yield {"connector": connector.name}, _task_counts(connector)

    def _tasks(self, type: str) -> Iterator[tuple[Mapping[str, str], Values]]:
        for tags, task in self._each_task():
            if (values := task.values().get(type)) is not None:
                yield tags, values

    def _connector_texts(self) -> Iterator[tuple[Mapping[str, str], Values]]:
        for connector in list(self._connectors.values()):
            yield {"connector": connector.name, **connector_texts(connector)}, {"info": 1}

    def _task_texts(self) -> Iterator[tuple[Mapping[str, str], Values]]:
        for connector in list(self._with_tasks.values()):
            for task in connector.tasks:
                yield {**_task_tags(task), **task_texts(connector, task)}, {"info": 1}

    def _chain_texts(self, noun: str) -> Iterator[tuple[Mapping[str, str], Values]]:
        for tags, task in self._each_task():
            for texts in chain_texts(task, noun):
                yield {**tags, **texts}, {"info": 1}

    def _queues(self) -> Iterator[tuple[Mapping[str, str], Values]]:
        for tags, task in self._each_task():
            if values := task.queued():
                yield tags, values

    def _plugins(self) -> Iterator[tuple[Mapping[str, str], Values]]:
        for tags, task in self._each_task():
            yield tags, task.plugin_values()

    def _rates(self) -> Iterator[tuple[Mapping[str, str], Values]]:
        for tags, task in self._each_task():
            yield tags, task.rate.values()

    def _calls(self) -> Iterator[tuple[Mapping[str, str], Values]]:
        for connector in list(self._connectors.values()):
            yield {"connector": connector.name}, connector.calls()
        for tags, task in self._each_task():
            yield tags, task.calls.statistics()

    def _each_task(self) -> Iterator[tuple[Mapping[str, str], WorkerTask]]:
        for connector in list(self._with_tasks.values()):
            for task in connector.tasks:
                yield _task_tags(task), task


def _task_tags(task: WorkerTask) -> dict[str, str]:
    return {"connector": task.setting.connector, "task": str(task.setting.task_id)}


def _task_counts(connector: WorkerConnector) -> Values:
    states = Counter(task.status.state for task in connector.tasks)
    shown = {f"connector-{state.value.lower()}-task-count": states[state] for state in _SHOWN}
    return {"connector-total-task-count": len(connector.tasks), **shown}
