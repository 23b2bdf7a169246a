"""Kafka's BlockingConnectorTest against our worker: connectors that hang disturb no other.

| Kafka's method | the point at which the plugin hangs |
|---|---|
| testBlockInConnectorStart, testWorkerRestartWithBlockInConnectorStart | Connector::start |
| testBlockInConnectorStop, testWorkerRestartWithBlockInConnectorStop | Connector::stop |
| testBlockInSourceTaskStart, testBlockInSinkTaskStart | Task::start |
| testBlockInSourceTaskStop, testBlockInSinkTaskStop | Task::stop |

Hanging checks of a config are in tests/connect/rest/test_hanging_plugins.py.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.connect.kafka_workers.worker_script import WorkerScript

AT_START = ("Connector::start", "Connector::taskConfigs", "Task::start", "Task::poll")
AT_END = ("Connector::stop", "Task::stop")


@pytest.fixture
def worker(logd, tmp_path: Path) -> Iterator[WorkerScript]:
    """Yield a worker that soon gives up waiting for a plugin's call."""
    settings = {"task_shutdown_graceful_timeout_ms": "200", "offset_flush_timeout_ms": "200"}
    script = WorkerScript(logd.bootstrap, tmp_path, **settings)
    try:
        yield script.start()
    finally:
        script.close()


def blocking(worker: WorkerScript, topic: str) -> Mapping[str, dict[str, str]]:
    """Return the configs of connectors that hang, by name."""
    sources = {f"source-{point}": worker.source(f"source-{point}", topic) for point in (*AT_START, *AT_END)}
    points = ("Task::start", "Task::put", "Task::stop")
    sinks = {f"sink-{point}": worker.sink(f"sink-{point}", topic) for point in points}
    return {name: {**config, "block": name.partition("-")[2]} for name, config in (sources | sinks).items()}


def test_connectors_that_hang_disturb_no_other_and_can_be_changed_and_deleted(worker, topic):
    worker.put("normal", worker.source("normal", topic))
    worker.wait_running("normal")
    configs = blocking(worker, topic)
    for name, config in configs.items():
        worker.put(name, config)
        if name.endswith("::stop"):
            worker.wait_running(name)
        else:
            worker.wait_until(lambda name=name: worker.is_blocked(name))
    assert worker.states("source-Connector::taskConfigs") == ("RUNNING", [])
    for name in ("source-Connector::start", "source-Task::start", "sink-Task::start"):
        assert "RUNNING" not in worker.states(name)[1]
    worker.put("late", worker.source("late", topic))
    worker.wait_running("late")
    worker.do("POST", "/connectors/normal/restart?includeTasks=true")
    worker.wait_until(lambda: len(worker.events("normal", "start")) == 4)

    for name, config in configs.items():
        worker.put(name, {key: value for key, value in config.items() if key != "block"})
    for name in configs:
        worker.wait_running(name)
        if name.startswith("sink-"):  # the abandoned task is no longer a member of its group
            count = len(worker.events(name, "put"))
            worker.wait_until(lambda name=name, count=count: len(worker.events(name, "put")) > count)
        worker.delete(name)


def test_a_worker_ends_and_starts_while_connectors_hang(worker, topic):
    configs = blocking(worker, topic)
    for name, config in configs.items():
        worker.put(name, config)
    for name in configs:
        if name.endswith("::stop"):
            worker.wait_running(name)
        else:
            worker.wait_until(lambda name=name: worker.is_blocked(name))
    assert worker.group.end(worker.urls[0], signal.SIGTERM) == 0
    worker.start()
    worker.put("normal", worker.source("normal", topic))
    worker.wait_running("normal")
