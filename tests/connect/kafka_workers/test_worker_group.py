"""Kafka's ConnectWorkerIntegrationTest against our workers: workers and brokers that come and go.

| Kafka's method | our test |
|---|---|
| testAddAndRemoveWorker | test_a_worker_comes_and_goes |
| testBrokerCoordinator | test_everything_stops_and_starts_with_the_broker |
| testRequestTimeouts | test_requests_time_out_without_a_broker |
| testSourceTaskNotBlockedOnShutdownWithNonExistentTopic | test_a_source_waits_for_its_topic_... |
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_client import Admin, Client, NewTopic
from tests.connect.kafka_workers.worker_script import WorkerScript
from tests.support.logd_process import LogdProcess


@pytest.fixture
def workers(logd, tmp_path: Path) -> Iterator[WorkerScript]:
    """Yield a group of two workers."""
    script = WorkerScript(logd.bootstrap, tmp_path)
    try:
        yield script.start(2)
    finally:
        script.close()


def test_a_worker_comes_and_goes(workers, topic):
    name = "simple-source"
    workers.put(name, workers.source(name, topic, tasks_max="4"))
    workers.wait_running(name, 4)
    first = set(workers.urls)
    workers.start()
    (extra,) = set(workers.urls) - first

    def owners() -> set[str]:
        return set(workers.group.owners(workers.urls[0], name)[name])

    workers.wait_until(lambda: extra.partition("://")[2] in owners())
    workers.wait_running(name, 4)
    assert workers.group.end(extra, signal.SIGTERM) == 0
    left = {url.partition("://")[2] for url in first}
    workers.wait_until(lambda: workers.states(name) == ("RUNNING", ["RUNNING"] * 4) and owners() <= left)


@pytest.fixture
def broken(tmp_path: Path) -> Iterator[tuple[LogdProcess, WorkerScript]]:
    """Yield a broker of the test's own, and a worker whose requests time out soon."""
    with LogdProcess(tmp_path / "logd", {"group.min.session.timeout.ms": "500"}) as broker:
        settings = {"rest_request_timeout_ms": "3000", "scheduled_rebalance_max_delay_ms": "0"}
        script = WorkerScript(broker.bootstrap, tmp_path, **settings)
        try:
            yield broker, script.start()
        finally:
            script.close()


def test_everything_stops_and_starts_with_the_broker(broken, topic):
    broker, worker = broken
    name = "simple-source"
    worker.put(name, worker.source(name, topic, tasks_max="2"))
    worker.wait_running(name, 2)
    broker.kill()
    worker.wait_until(lambda: worker.health()[0] == 500)
    text = "Worker was unable to handle this request and may be unable to handle other requests"
    assert text in worker.health()[1]["message"]
    worker.wait_until(lambda: {event["task"] for event in worker.events(name, "stop")} == {None, 0, 1})
    broker.start()
    worker.wait_until(lambda: worker.is_healthy(worker.urls[0]))
    worker.wait_until(lambda: len(worker.events(name, "start")) >= 6)
    worker.wait_running(name, 2)


def test_requests_time_out_without_a_broker(broken, topic):
    broker, worker = broken
    name = "simple-source"
    config = worker.source(name, topic)
    worker.put(name, config)
    worker.wait_running(name)
    broker.kill()
    changed = config | {"tasks.max": "2"}
    for method, path, body in (
        ("PUT", f"/connectors/{name}/config", changed),
        ("DELETE", f"/connectors/{name}", None),
    ):
        status, answer = worker.ask(method, path, body)
        assert status == 500
        assert answer["message"].startswith("Request timed out. The worker is currently ")
    broker.start()
    worker.put(name, changed)
    worker.wait_running(name, 2)


async def test_a_source_waits_for_its_topic_and_can_be_deleted(worker, kit, topic, name):
    config = worker.source(name, topic, throughput="-1")
    config = {key: value for key, value in config.items() if not key.startswith("topic.creation")}
    worker.put(name, config)
    worker.wait_running(name)
    log = worker.group.log(worker.urls[0])
    worker.wait_until(lambda: f"topic {topic} does not exist: create it" in log.read_text())
    assert worker.states(name) == ("RUNNING", ["RUNNING"])
    worker.delete(name)
    # The connector is gone from the group's state before its worker has stopped what it ran.
    worker.wait_until(lambda: {event["task"] for event in worker.events(name, "stop")} == {None, 0})
    worker.put(name, config)
    worker.wait_running(name)
    async with Client(kit.bootstrap) as client:
        await Admin(client).create_topics([NewTopic(topic, 1, 1)])
    worker.wait_until(lambda: worker.events(name, "commit"))
