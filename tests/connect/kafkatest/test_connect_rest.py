"""The scenario of kafkatest's `connect_rest_test`: two workers, a file source and a file sink."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.connect.kafkatest.service import JSON_CONVERTER, ConnectService, RestError
from tests.support.logd_process import LogdProcess

SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
FIRST, LONGER = ["foo", "bar", "baz"], ["foo", "bar", "baz", "razz", "ma", "tazz"]


@pytest.fixture
def service(logd: LogdProcess, tmp_path: Path) -> Iterator[ConnectService]:
    service = ConnectService(logd.bootstrap, tmp_path, nodes=2)
    yield service
    service.close()


def lines_of(path: Path) -> set[str]:
    return set(path.read_text().split()) if path.exists() else set()


def test_the_whole_life_of_a_file_source_and_sink(service: ConnectService, topic: str, tmp_path: Path):
    first, second, output = (tmp_path / name for name in ("input", "input2", "output"))
    assert service.retry("/connectors") == []
    plugins = {each["class"]: each["type"] for each in service.rest("/connector-plugins/")}
    assert (plugins[SOURCE], plugins[SINK]) == ("source", "sink")
    source: dict[str, Any] = {
        "name": "local-file-source",
        "connector.class": SOURCE,
        "tasks.max": "1",
        "key.converter": JSON_CONVERTER,
        "value.converter": JSON_CONVERTER,
        "topic": topic,
        "file": str(first),
    }
    sink = {**source, "name": "local-file-sink", "connector.class": SINK, "topics": topic}
    del sink["topic"]
    sink["file"] = str(output)
    for config in (source, sink):
        plugin = config["connector.class"]
        report = service.rest(f"/connector-plugins/{plugin}/config/validate", config, method="PUT")
        assert (report["name"], report["error_count"]) == (plugin, 0)
        assert set(config) <= {each["definition"]["name"] for each in report["configs"]}
    service.create(source)
    service.create(sink)
    service.wait_until(lambda: set(service.rest("/connectors")) == {"local-file-source", "local-file-sink"})
    first.write_text("".join(f"{line}\n" for line in FIRST))
    service.wait_until(lambda: lines_of(output) == set(FIRST))

    with pytest.raises(RestError) as error:
        service.rest("/connectors", {"name": source["name"], "config": source}, method="POST")
    assert error.value.status == 409

    for config, kind in ((source, "source"), (sink, "sink")):
        name = config["name"]
        info = service.rest(f"/connectors/{name}")
        assert info == {
            "name": name,
            "config": config,
            "tasks": [{"connector": name, "task": 0}],
            "type": kind,
        }
        assert service.rest(f"/connectors/{name}/config") == config
        (task,) = service.rest(f"/connectors/{name}/tasks")
        assert task["id"] == {"connector": name, "task": 0}
        assert task["config"]["file"] == config["file"]
        # Kafka's task configs name the class that runs them.
        assert task["config"]["task.class"] == config["connector.class"].removesuffix("Connector") + "Task"

    service.retry("/connectors/local-file-source/config", {**source, "file": str(second)}, method="PUT")
    second.write_text("".join(f"{line}\n" for line in LONGER))
    service.wait_until(lambda: lines_of(output) == set(LONGER))

    service.delete("local-file-source")
    service.delete("local-file-sink")
    service.wait_until(lambda: all(service.rest("/connectors", node=node) == [] for node in service.nodes))
