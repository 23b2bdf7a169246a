"""Kafka's SessionedProtocolIntegrationTest against our workers.

| Kafka's method | our test |
|---|---|
| ensureInternalEndpointIsSecured | test_task_configs_are_taken_with_a_valid_signature_only |

The other internal endpoint (`/fence`) is asked too, and both workers are: the leader and the other one.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka_client.http.client import HttpClient
from tests.connect.kafka_workers.worker_script import WorkerScript

WRONG = {
    "x-connect-authorization": "S2Fma2Flc3F1ZQ==",
    "x-connect-request-signature-algorithm": "HmacSHA256",
}


@pytest.fixture
def pair(logd, tmp_path) -> Iterator[WorkerScript]:
    script = WorkerScript(logd.bootstrap, tmp_path, connect_protocol="sessioned")
    try:
        yield script.start(2)
    finally:
        script.close()


def test_task_configs_are_taken_with_a_valid_signature_only(pair, topic):
    client, name = HttpClient(timeout=20), "connector"

    def statuses(headers: dict[str, str]) -> set[int]:
        content = {"content-type": "application/json", **headers}
        requests = [("POST", f"/connectors/{name}/tasks"), ("PUT", f"/connectors/{name}/fence")]
        return {
            client.request(method, url + path, b"[]", content).status
            for url in pair.urls
            for method, path in requests
        }

    assert statuses({}) == {400}
    assert statuses(WRONG) == {403}
    pair.put(name, pair.sink(name, topic))
    pair.wait_running(name)
    assert statuses({}) == {400}
    assert statuses(WRONG) == {403}
    assert pair.states(name) == ("RUNNING", ["RUNNING"])
