"""Kafka's ConnectWorkerIntegrationTest against our worker: what a connector's target state does.

| Kafka's method | our test |
|---|---|
| testPauseStopResume | test_all_ways_between_running_paused_and_stopped |
| testStoppedState | test_a_connector_whose_start_or_stop_fails_is_stopped_and_resumed |
| testCreateConnectorWithPausedInitialState | test_a_connector_created_paused_has_no_tasks |
| testCreateSourceConnectorWithStoppedInitialStateAndModifyOffsets | test_a_source_created_stopped_... |
| testCreateSinkConnectorWithStoppedInitialStateAndModifyOffsets | test_a_sink_created_stopped_... |
| testDeleteConnectorCreatedWithPausedOrStoppedInitialState | test_a_connector_created_at_rest_is_deleted |
"""

from __future__ import annotations

from typing import Any

import pytest

from kafka_client import Admin, Client, NewTopic, Producer
from tests.connect.kafka_workers.worker_script import WorkerScript

RUNNING = ["RUNNING"] * 4


def create(worker: WorkerScript, name: str, config: dict[str, str], state: str) -> None:
    """Create a connector in an initial state, and wait until it rests in it, without tasks."""
    worker.do("POST", "/connectors", {"name": name, "config": config, "initial_state": state})
    worker.wait_state(name, state)
    assert_no_tasks(worker, name)


def assert_no_tasks(worker: WorkerScript, name: str) -> None:
    assert worker.do("GET", f"/connectors/{name}")["tasks"] == []
    assert worker.do("GET", f"/connectors/{name}/tasks") == []


def test_all_ways_between_running_paused_and_stopped(worker, topic, name):
    worker.put(name, worker.source(name, topic, tasks_max="4"))
    worker.wait_state(name, "RUNNING", *RUNNING)
    steps: list[tuple[str, str, list[str]]] = [
        ("stop", "STOPPED", []),
        ("resume", "RUNNING", RUNNING),
        ("pause", "PAUSED", ["PAUSED"] * 4),
        ("stop", "STOPPED", []),
        ("pause", "PAUSED", []),
        ("resume", "RUNNING", RUNNING),
    ]
    for request, connector, tasks in steps:
        for _ in range(2):  # the second request changes nothing
            worker.do("PUT", f"/connectors/{name}/{request}")
        worker.wait_state(name, connector, *tasks)
        if connector == "STOPPED":
            assert_no_tasks(worker, name)
    worker.delete(name)


def test_a_connector_whose_start_or_stop_fails_is_stopped_and_resumed(worker, topic, name):
    config = worker.source(name, topic, tasks_max="4")
    worker.put(name, {**config, "connector.start.inject.error": "true"})
    worker.wait_state(name, "FAILED")
    assert "Injecting errors during connector start" in worker.status(name)["connector"]["trace"]
    worker.do("PUT", f"/connectors/{name}/stop")
    worker.wait_state(name, "STOPPED")
    assert_no_tasks(worker, name)
    worker.put(name, config)
    worker.do("PUT", f"/connectors/{name}/resume")
    worker.wait_state(name, "RUNNING", *RUNNING)
    worker.put(name, {**config, "connector.stop.inject.error": "true"})
    worker.do("PUT", f"/connectors/{name}/stop")
    worker.wait_state(name, "STOPPED")
    assert_no_tasks(worker, name)
    worker.do("PUT", f"/connectors/{name}/resume")
    worker.wait_state(name, "RUNNING", *RUNNING)
    worker.delete(name)


def test_a_connector_created_paused_has_no_tasks(worker, topic, name):
    create(worker, name, worker.source(name, topic, tasks_max="4"), "PAUSED")
    worker.do("PUT", f"/connectors/{name}/resume")
    worker.wait_state(name, "RUNNING", *RUNNING)


def test_a_source_created_stopped_begins_at_an_altered_offset(worker, kit, topic, name):
    config = worker.source(name, topic, max_messages="10")
    create(worker, name, config, "STOPPED")
    row = {"partition": {"task.id": f"{name}-0"}, "offset": {"saved": 5}}
    worker.do("PATCH", f"/connectors/{name}/offsets", {"offsets": [row]})
    worker.do("PUT", f"/connectors/{name}/resume")
    worker.wait_running(name)
    worker.wait_until(lambda: worker.events(name, "commit")[-1:] == [committed(10)])
    assert [value for _, _, value in kit.read(topic)] == [b"value-0-%d" % n for n in range(6, 11)]


def committed(number: int) -> dict[str, Any]:
    return {"event": "commit", "task": 0, "saved": number}


async def test_a_sink_created_stopped_skips_what_an_altered_offset_skips(worker, kit, topic, name):
    async with Client(kit.bootstrap) as client, Producer(client) as producer:
        await Admin(client).create_topics([NewTopic(topic, 1, 1)])
        for n in range(10):
            await producer.send_and_wait(topic, b"Message %d" % n)
    create(worker, name, worker.sink(name, topic), "STOPPED")
    row = {"partition": {"kafka_topic": topic, "kafka_partition": 0}, "offset": {"kafka_offset": 5}}
    worker.do("PATCH", f"/connectors/{name}/offsets", {"offsets": [row]})
    worker.do("PUT", f"/connectors/{name}/resume")
    worker.wait_running(name)
    worker.wait_until(lambda: len(worker.events(name, "put")) >= 5)
    assert [event["offset"] for event in worker.events(name, "put")] == [5, 6, 7, 8, 9]
    assert worker.states(name) == ("RUNNING", ["RUNNING"])


@pytest.mark.parametrize("state", ["PAUSED", "STOPPED"])
def test_a_connector_created_at_rest_is_deleted(worker, topic, name, state):
    create(worker, name, worker.source(name, topic), state)
    worker.delete(name)
    assert name not in worker.do("GET", "/connectors")
