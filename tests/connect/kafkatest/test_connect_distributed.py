"""The scenarios of kafkatest's `connect_distributed_test`, for each protocol of a group.

Its rows of broker versions are left out: the clients' tests have those. `test_broker_compatibility` on our
own broker is what the file source and sink show here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.connect.integration.conftest import WorkerKit
from tests.connect.kafkatest.service import ConnectService, numbers
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess

MOCK = "org.apache.kafka.connect.tools.Mock{}Connector"
VERIFIABLE = "org.apache.kafka.connect.tools.Verifiable{}Connector"
PROTOCOLS = ["sessioned", *(pytest.param(each, marks=deep) for each in ("compatible", "eager"))]
_numbers = count()


@pytest.fixture(scope="module", params=PROTOCOLS)
def service(
    request: pytest.FixtureRequest, logd: LogdProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ConnectService]:
    """Yield three workers that the scenarios of one protocol share."""
    service = ConnectService(
        logd.bootstrap, tmp_path_factory.mktemp("workers"), nodes=3, protocol=request.param
    )
    yield service
    service.close()


@pytest.fixture
def name(service: ConnectService) -> Iterator[str]:
    """Yield the name of a scenario's connector, and delete what the scenario has made."""
    name = f"k{next(_numbers)}"
    yield name
    for each in service.retry("/connectors"):
        if each.startswith(name):
            service.delete(each)


def mock(kind: str, name: str, mode: str, topic: str) -> dict[str, str]:
    config = {"name": name, "connector.class": MOCK.format(kind), "tasks.max": "1"}
    config |= {"mock_mode": mode, "delay_ms": "1000"}
    return {**config, "topics": topic} if kind == "Sink" else config


def verifiable_source(name: str, topic: str, tasks: int = 1, throughput: int = 200) -> dict[str, str]:
    return {
        "name": name,
        "connector.class": VERIFIABLE.format("Source"),
        "tasks.max": str(tasks),
        "topic": topic,
        "throughput": str(throughput),
    }


def verifiable_sink(name: str, topic: str, tasks: int = 1) -> dict[str, str]:
    return {
        "name": name,
        "connector.class": VERIFIABLE.format("Sink"),
        "tasks.max": str(tasks),
        "topics": topic,
    }


@pytest.mark.parametrize("path", ["restart", "restart?onlyFailed=true&includeTasks=false"])
def test_restart_failed_connector(service: ConnectService, kit: WorkerKit, name: str, topic: str, path: str):
    """`test_restart_failed_connector` and `test_restart_connector_and_tasks_failed_connector`."""
    service.create(mock("Sink", name, "connector-failure", topic))
    service.wait_until(lambda: service.connector_state(name) == "FAILED")
    service.retry(f"/connectors/{name}/{path}", method="POST")
    service.wait_until(lambda: service.connector_state(name) == "RUNNING")


@pytest.mark.parametrize("path", ["tasks/0/restart", "restart?onlyFailed=false&includeTasks=true"])
@pytest.mark.parametrize("kind", ["Source", "Sink"])
def test_restart_failed_task(
    service: ConnectService, kit: WorkerKit, name: str, topic: str, kind: str, path: str
):
    """`test_restart_failed_task` and `test_restart_connector_and_tasks_failed_task`."""
    service.create(verifiable_source(f"{name}-feed", topic))
    service.wait_until(lambda: service.is_in("RUNNING", f"{name}-feed"))
    service.create(mock(kind, name, "task-failure", topic))
    service.wait_until(lambda: service.task_state(name) == "FAILED")
    service.retry(f"/connectors/{name}/{path}", method="POST")
    service.wait_until(lambda: service.task_state(name) == "RUNNING")


def test_pause_and_resume_source(service: ConnectService, name: str, topic: str):
    service.create(verifiable_source(name, topic))
    service.wait_until(lambda: service.is_in("RUNNING", name))
    service.rest(f"/connectors/{name}/pause", method="PUT")
    service.wait_all("PAUSED", name)
    sent = len(service.sent(name))
    # A second connector's hundred records are the time in which a paused one would have sent as many.
    service.create(verifiable_source(f"{name}-other", topic))
    service.wait_until(lambda: len(service.sent(f"{name}-other")) > 100)
    assert len(service.sent(name)) == sent
    service.rest(f"/connectors/{name}/resume", method="PUT")
    service.wait_all("RUNNING", name)
    service.wait_until(lambda: len(service.sent(name)) > sent)


def test_pause_and_resume_sink(service: ConnectService, name: str, topic: str):
    source = f"{name}-source"
    service.create(verifiable_source(source, topic))
    service.wait_until(lambda: service.committed(source))
    service.create(verifiable_sink(name, topic))
    service.wait_until(lambda: service.is_in("RUNNING", name))
    service.wait_until(lambda: service.received(name))
    service.rest(f"/connectors/{name}/pause", method="PUT")
    service.wait_all("PAUSED", name)
    received, sent = len(service.received(name)), len(service.sent(source))
    service.wait_until(lambda: len(service.sent(source)) > sent + 100)
    assert len(service.received(name)) == received
    service.rest(f"/connectors/{name}/resume", method="PUT")
    service.wait_all("RUNNING", name)
    service.wait_until(lambda: len(service.received(name)) > received)


def test_file_source_and_sink(service: ConnectService, name: str, topic: str, tmp_path: Path):
    """`test_file_source_and_sink` and `test_pause_state_persistent`: a restart of all workers in turn."""
    files = "org.apache.kafka.connect.file.FileStream{}Connector"
    file, output, paused = tmp_path / "input", tmp_path / "output", f"{name}-paused"
    source = {"name": f"{name}-source", "connector.class": files.format("Source"), "topic": topic}
    sink = {"name": f"{name}-sink", "connector.class": files.format("Sink"), "topics": topic}
    service.create({**source, "file": str(file)})
    service.create({**sink, "file": str(output)})
    service.create(verifiable_source(paused, f"{topic}-paused"))
    service.wait_until(lambda: service.is_in("RUNNING", paused))
    service.rest(f"/connectors/{paused}/pause", method="PUT")
    with file.open("a") as opened:
        opened.write("foo\nbar\nbaz\n")
    service.wait_until(lambda: output.exists() and set(output.read_text().split()) == {"foo", "bar", "baz"})
    for node in service.nodes:
        service.bounce(node, is_clean=True)
    with file.open("a") as opened:
        opened.write("razz\nma\ntazz\n")
    expected = ["foo", "bar", "baz", "razz", "ma", "tazz"]
    service.wait_until(lambda: set(output.read_text().split()) == set(expected))
    assert output.read_text().split() == expected  # workers that stop in order commit: nothing comes twice
    service.wait_all("PAUSED", paused)


# The protocols share what is bounced; one is enough for minutes of work.
@pytest.mark.parametrize("service", ["sessioned"], indirect=True)
@pytest.mark.parametrize("is_clean", [pytest.param(True, marks=deep), pytest.param(False, marks=deep)])
def test_bounce(service: ConnectService, name: str, topic: str, is_clean: bool):
    """Nothing is lost while workers are bounced; nothing comes twice if they stop in order."""
    tasks, source, sink = 3, f"{name}-source", f"{name}-sink"
    service.create(verifiable_source(source, topic, tasks, throughput=100))
    service.create(verifiable_sink(sink, topic, tasks))
    service.wait_all("RUNNING", source, tasks)
    service.wait_all("RUNNING", sink, tasks)
    for node in service.nodes:
        count = len(service.committed(source))
        service.wait_until(lambda count=count: len(service.committed(source)) > count + 50)
        service.bounce(node, is_clean=is_clean)
        service.wait_all("RUNNING", source, tasks)
        service.wait_all("RUNNING", sink, tasks)

    def is_enough(lines) -> bool:
        return all(len(numbers(lines, task)) > 500 for task in range(tasks))

    service.wait_until(lambda: is_enough(service.committed(source)))
    service.rest(f"/connectors/{source}/stop", method="PUT")
    service.wait_until(lambda: service.connector_state(source) == "STOPPED")
    service.wait_until(lambda: not (service.status(source) or {"tasks": [1]})["tasks"])
    committed = service.committed(source)

    def is_flushed() -> bool:
        flushed = service.flushed(sink)
        return all(max(numbers(flushed, t), default=-1) >= max(numbers(committed, t)) for t in range(tasks))

    service.wait_until(is_flushed)
    flushed = service.flushed(sink)
    for task in range(tasks):
        made, arrived = numbers(committed, task), numbers(flushed, task)
        # A source that has been told to stop hears no more of the records that its last `poll` returned.
        assert max(arrived) >= max(made)
        assert set(arrived) == set(range(max(arrived) + 1)), "nothing is lost"
        # A worker that is killed takes some committed lines with it: they are only printed after the commit.
        if is_clean:
            assert set(made) == set(range(max(made) + 1))
            assert set(made.values()) == set(arrived.values()) == {1}


def test_transformations(service: ConnectService, kit: WorkerKit, name: str, topic: str, tmp_path: Path):
    file = tmp_path / "input"
    prefix = "org.apache.kafka.connect.transforms"
    service.create(
        {
            "name": name,
            "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
            "tasks.max": 1,
            "file": str(file),
            "topic": topic,
            "transforms": "hoistToStruct,insertTimestampField",
            "transforms.hoistToStruct.type": f"{prefix}.HoistField$Value",
            "transforms.hoistToStruct.field": "content",
            "transforms.insertTimestampField.type": f"{prefix}.InsertField$Value",
            "transforms.insertTimestampField.timestamp.field": "the_timestamp",
        }
    )
    service.wait_until(lambda: service.connector_state(name) == "RUNNING")
    file.write_text("foo\nbar\nbaz\n")
    service.wait_until(lambda: (service.rest(f"/connectors/{name}/topics")[name]["topics"]) == [topic])
    service.wait_until(lambda: len(kit.read(topic)) == 3)
    stamp = {"field": "the_timestamp", "name": "org.apache.kafka.connect.data.Timestamp", "type": "int64"}
    schema = {
        "type": "struct",
        "fields": [
            {"field": "content", "type": "string", "optional": False},
            {**stamp, "version": 1, "optional": True},
        ],
        "optional": False,
    }
    payloads = []
    for timestamp, _, value in kit.read(topic):
        document = json.loads(value or b"")
        assert document["schema"] == schema
        assert document["payload"]["the_timestamp"] == timestamp
        payloads.append(document["payload"]["content"])
    assert payloads == ["foo", "bar", "baz"]
