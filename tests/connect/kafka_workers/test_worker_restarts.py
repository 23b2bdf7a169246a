"""Kafka's ConnectorRestartApiIntegrationTest against our worker: what one request restarts (KIP-745).

| Kafka's method | our test |
|---|---|
| testRestartUnknownConnector, ...NoParams | test_an_unknown_connector |
| testRunningConnectorAndTasksRestart... | test_what_runs_is_restarted_unless_only_failures_are_asked_for |
| testFailedConnectorRestart... | test_a_failed_connector_is_restarted_by_each_request |
| testOneFailedTasksRestartOnlyOneTasks | test_only_failed_tasks[failing0] |
| testMultipleFailedTasksRestartOnlyFailedTasks | test_only_failed_tasks[failing1] |
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.connect.kafka_workers.worker_script import WorkerScript

BOTH = "includeTasks=true&onlyFailed=true"
QUERIES = ["", "?onlyFailed=true", "?includeTasks=true", f"?{BOTH}"]


def starts(worker: WorkerScript, name: str) -> dict[int | None, int]:
    """Return how often the connector, None, and each of its tasks have started."""
    parts = [event["task"] for event in worker.events(name, "start")]
    return {part: parts.count(part) for part in parts}


def restart(worker: WorkerScript, name: str, query: str = "") -> tuple[int, list[int | None]]:
    """Restart a connector. Return the status, and the parts that the answer shows as RESTARTING."""
    status, answer = worker.ask("POST", f"/connectors/{name}/restart{query}")
    rows: dict[int | None, Any] = {}
    if answer:
        rows = {None: answer["connector"]} | {task["id"]: task for task in answer["tasks"]}
    return status, [part for part, row in rows.items() if row["state"] == "RESTARTING"]


@pytest.mark.parametrize("query", QUERIES)
def test_an_unknown_connector(worker, query):
    status, answer = worker.ask("POST", f"/connectors/unknown/restart{query}")
    assert (status, answer["error_code"]) == (404, 404)


def test_what_runs_is_restarted_unless_only_failures_are_asked_for(worker, topic, name):
    worker.put(name, worker.source(name, topic, tasks_max="2"))
    worker.wait_running(name, 2)
    before = starts(worker, name)
    for query in ("?onlyFailed=true", f"?{BOTH}"):
        assert restart(worker, name, query) == (202, [])
    assert restart(worker, name) == (204, [])
    worker.wait_until(lambda: starts(worker, name) == before | {None: before[None] + 1})
    worker.wait_running(name, 2)
    assert restart(worker, name, "?includeTasks=true") == (202, [None, 0, 1])
    worker.wait_until(lambda: starts(worker, name) == {None: before[None] + 2, 0: 2, 1: 2})
    worker.wait_running(name, 2)


def test_a_failed_connector_is_restarted_by_each_request(worker, topic, name):
    worker.put(name, worker.source(name, topic, connector_start_inject_error="true"))
    worker.wait_state(name, "FAILED")
    for count, query in enumerate(QUERIES, 2):
        expected = (202, [None]) if query else (204, [])
        assert restart(worker, name, query) == expected
        worker.wait_until(lambda count=count: starts(worker, name) == {None: count})
        worker.wait_state(name, "FAILED")


@pytest.mark.parametrize("failing", [[1], [0, 2]])
def test_only_failed_tasks(worker, topic, name, failing):
    config = worker.source(name, topic, tasks_max="3", num_tasks="3")
    worker.put(name, config | {"tasks.start.inject.error": ",".join(map(str, failing))})
    states = ["FAILED" if task in failing else "RUNNING" for task in range(3)]
    worker.wait_state(name, "RUNNING", *states)
    assert restart(worker, name, f"?{BOTH}") == (202, failing)
    expected = {None: 1} | {task: 2 if task in failing else 1 for task in range(3)}
    worker.wait_until(lambda: starts(worker, name) == expected)
    worker.wait_state(name, "RUNNING", *states)
