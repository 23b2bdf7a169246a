"""A worker with a config topic that another has left half written, and clients that do not take turns."""

from __future__ import annotations

import json
import random
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from connect.stores import ConfigTopic, InternalTopic
from kafka_client import Client, Producer
from tests.support.connect_group import ConnectGroup
from tests.support.logd_process import LogdProcess

VERIFIABLE = "org.apache.kafka.connect.tools.VerifiableSourceConnector"
CONFIG = {"connector.class": VERIFIABLE, "topic": "sabotage", "throughput": "5"}


def text(value: Any) -> bytes:
    return json.dumps(value).encode()


def properties(**more: Any) -> bytes:
    return text({"properties": {**CONFIG, **more}})


HALF_WRITTEN: list[tuple[bytes, bytes | None]] = [
    (b"connector-good", properties(name="good")),
    (b"connector-cut", b'{"properties": {"connector.cl'),
    (b"connector-list", text({"properties": [1]})),
    (b"connector-number", text(5)),
    (b"connector-types", text({"properties": {"connector.class": 5, "name": None, "tasks.max": []}})),
    (b"connector-alien", properties(**{"connector.class": "no.such.Plugin", "name": "alien"})),
    (b"connector-", properties(name="")),
    (b"connector-large", properties(name="large", filler="x" * 900_000)),
    (b"connector-uncommitted", properties(name="uncommitted")),
    (b"task-uncommitted-0", properties()),
    (b"connector-greedy", properties(name="greedy")),
    (b"commit-greedy", text({"tasks": 10**15})),
    (b"commit-orphan", text({"tasks": 3})),
    (b"task-orphan-7", None),
    (b"task-good-x", properties()),
    (b"task-good-0", text({"properties": None})),
    (b"commit-good", None),
    (b"commit-good", text({"tasks": -5})),
    (b"commit-good", text({"tasks": "x"})),
    (b"commit-good", text({})),
    (b"target-state-good", text({"state": "NONSENSE"})),
    (b"target-state-good", text([])),
    (b"target-state-orphan", None),
    (b"restart-connector-ghost", text({"include-tasks": 5})),
    (b"logger-cluster-connect", text({"level": "LOUD"})),
    (b"session-key", text({"key": 5})),
    (b"tasks-fencing-good", text({"task-count": None})),
    (b"what-is-this", text({})),
    (b"\xff\xfe", text({})),
    (b"", text({})),
    (b"connector-deleted", properties(name="deleted")),
    (b"connector-deleted", None),
    (b"commit-deleted", text({"tasks": 1})),
]


@pytest.fixture
def group(logd: LogdProcess, tmp_path: Path) -> Iterator[ConnectGroup]:
    group = ConnectGroup(logd.bootstrap, tmp_path)
    yield group
    for url in list(group.workers):
        group.end(url)


async def write_half(group: ConnectGroup) -> None:
    """Write a config topic as no worker leaves it."""
    topic = InternalTopic(
        name=group.settings["config.storage.topic"],
        setting="config.storage.topic",
        purpose="connector configurations",
        replication_factor=1,
    )
    async with Client(group.settings["bootstrap.servers"]) as client:
        await (await ConfigTopic.open(client, topic, lambda records: None)).close()
        async with Producer(client) as producer:
            for key, value in HALF_WRITTEN:
                await producer.send_and_wait(topic.name, value, key=key)


def is_running(group: ConnectGroup, url: str, name: str) -> bool:
    return len(group.owners(url, name)[name]) == 1


async def test_a_half_written_config_topic_and_clients_that_race(group: ConnectGroup) -> None:
    await write_half(group)
    url = group.start()
    for name in ("good", "uncommitted", "large", "greedy"):
        group.wait_until(lambda name=name: is_running(group, url, name))
    for name in ("alien", "types"):
        group.wait_until(
            lambda name=name: group.status(url, name).get("connector", {}).get("state") == "FAILED"
        )
    assert "no.such" in group.status(url, "alien")["connector"]["trace"]
    listed = group.do("GET", f"{url}/connectors")
    assert not {"cut", "list", "number", "orphan", "deleted"} & set(listed)
    shown = group.do("GET", f"{url}/connectors?expand=info&expand=status")
    assert {"good", "alien", "types"} <= set(shown)

    race(group, url)

    group.do("PUT", f"{url}/connectors/race/config", CONFIG)
    group.do("PUT", f"{url}/connectors/race/resume")
    group.wait_until(lambda: is_running(group, url, "race"))
    for name in listed:
        if name:
            group.do("DELETE", f"{url}/connectors/{name}")
    group.wait_until(lambda: set(group.do("GET", f"{url}/connectors")) <= {"race", ""})
    assert group.end(url, signal.SIGTERM) == 0
    assert "Traceback" not in group.log(url).read_text()


REQUESTS: list[tuple[str, str, Any, set[int]]] = [
    ("PUT", "/config", CONFIG, {200, 201}),
    ("DELETE", "", None, {204, 404}),
    ("POST", "/restart", None, {204, 404}),
    ("POST", "/restart?includeTasks=true", None, {202, 404}),
    ("POST", "/tasks/0/restart", None, {204, 404}),
    ("PUT", "/pause", None, {202, 404}),
    ("PUT", "/resume", None, {202, 404}),
    ("PUT", "/stop", None, {204, 404}),
    ("GET", "/status", None, {200, 404}),
    ("PATCH", "/config", {"throughput": "7"}, {200, 404}),
    ("GET", "/offsets", None, {200, 404}),
    ("DELETE", "/offsets", None, {200, 400, 404}),
]
"""Method, path behind the connector's, body, and the statuses that are right at any moment; 409 always is."""


def race(group: ConnectGroup, url: str) -> None:
    """Send requests about one connector from several clients at the same time."""

    def client(seed: int) -> list[Any]:
        chosen = random.Random(seed)
        wrong = []
        for _ in range(15):
            method, path, body, right = chosen.choice(REQUESTS)
            if method == "PUT" and path == "/config":
                body = {**body, "throughput": str(chosen.randrange(1, 9))}
            status, answer = group.ask(method, f"{url}/connectors/race{path}", body)
            if status not in right | {409}:
                wrong.append((method, path, status, answer))
        return wrong

    with ThreadPoolExecutor(6) as pool:
        assert [wrong for each in pool.map(client, range(6)) for wrong in each] == []
