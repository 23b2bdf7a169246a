"""kafka-connect-py, unchanged: every call that it has, to a standalone worker and to one of a group."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka_connect import KafkaConnect
from requests.exceptions import HTTPError

from tests.connect.cli.test_standalone_rest import worker_process
from tests.support.connect_group import ConnectGroup
from tests.support.waiting import wait_for

FILE_SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"


@pytest.fixture(params=["standalone", "distributed"])
def url(request: pytest.FixtureRequest, logd, tmp_path: Path) -> Iterator[str]:
    if request.param == "standalone":
        with worker_process(logd.bootstrap, tmp_path, listeners="http://127.0.0.1:0") as (_, started):
            yield started["rest"]
        return
    group = ConnectGroup(logd.bootstrap, tmp_path)
    address = group.start()
    try:
        group.do("GET", f"{address}/connectors")  # once the port is open
        group.wait_until(lambda: group.ask("GET", f"{address}/health")[0] == 200)
        yield address
    finally:
        group.end(address)


def test_every_call_is_answered(url: str, topic: str, tmp_path: Path) -> None:
    connect = KafkaConnect(url=url)
    assert connect.get_cluster_info().keys() == {"version", "commit", "kafka_cluster_id"}
    assert FILE_SOURCE in {plugin["class"] for plugin in connect.list_connector_plugins()}
    (tmp_path / "in.txt").write_text("one\ntwo\n")
    config = {
        "name": "lines",
        "connector.class": FILE_SOURCE,
        "tasks.max": "1",
        "file": str(tmp_path / "in.txt"),
        "topic": topic,
    }
    report = connect.validate_connector_config("FileStreamSourceConnector", config)
    assert (report["name"], report["error_count"]) == (FILE_SOURCE, 0)
    created = connect.create_connector({"name": "lines", "config": config})
    assert (created["name"], created["type"], created["config"]) == ("lines", "source", config)
    with pytest.raises(HTTPError):
        connect.create_connector({"name": "lines", "config": config})

    def states() -> list[str]:
        try:
            status = connect.get_connector_status("lines")
        except HTTPError as error:
            # A connector has no status until its worker has started it, as in Kafka.
            if error.response.status_code == 404:
                return []
            raise
        return [status["connector"]["state"], *(task["state"] for task in status["tasks"])]

    wait_for(lambda: states() == ["RUNNING", "RUNNING"])
    wait_for(lambda: connect.list_connector_topics("lines") == {"lines": {"topics": [topic]}})
    assert connect.list_connectors() == ["lines"]
    assert connect.list_connectors(expand="status", state="running").keys() == {"lines"}
    assert connect.get_connector("lines")["tasks"] == [{"connector": "lines", "task": 0}]
    assert connect.get_connector_config("lines") == config
    (task,) = connect.list_connector_tasks("lines")
    assert task["id"] == {"connector": "lines", "task": 0}
    assert connect.get_connector_task_status("lines", 0)["state"] == "RUNNING"
    changed = connect.update_connector("lines", {**config, "batch.size": "10"})
    assert changed["config"]["batch.size"] == "10"
    wait_for(lambda: states() == ["RUNNING", "RUNNING"])
    connect.pause_connector("lines")
    wait_for(lambda: states() == ["PAUSED", "PAUSED"])
    connect.resume_connector("lines")
    wait_for(lambda: states() == ["RUNNING", "RUNNING"])
    connect.restart_connector("lines", include_tasks=True, only_failed=False)
    wait_for(lambda: states() == ["RUNNING", "RUNNING"])
    connect.restart_connector_task("lines", 0)
    wait_for(lambda: states() == ["RUNNING", "RUNNING"])
    connect.reset_connector_topics("lines")
    connect.stop_connector("lines")
    wait_for(lambda: states() == ["STOPPED"])
    connect.delete_connector("lines")
    wait_for(lambda: connect.list_connectors() == [])
