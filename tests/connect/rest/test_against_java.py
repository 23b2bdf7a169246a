"""Requests to Apache Kafka's standalone worker and to ours get equal statuses and documents.

Where Java answers 500 for a client's mistake, ours answers 400 or 404: `MENDED` lists these.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.java import QUICK, needs_jar
from tests.support.java_programs import classes_of
from tests.support.logd_process import LogdProcess
from tests.support.ports import free_port
from tests.support.waiting import wait_for

LIBS = os.environ.get("KAFKA_LIBS", "")
JAVA, OURS = "CountingSource", "tests.connect.rest.counting:CountingSource"
CONFIG = {"connector.class": JAVA, "topic": "t", "tasks.max": "1"}
OFFSETS = {"offsets": [{"partition": {"p": 1}, "offset": {"o": 2}}]}

Request = tuple[str, str] | tuple[str, str, object]
REQUESTS: list[Request] = [
    ("GET", "/connectors"),
    ("GET", "/nothing"),
    ("DELETE", "/connectors"),
    ("PUT", "/connectors/x/status"),
    ("PUT", "/connectors/x/tasks"),
    ("POST", "/connectors", {"name": "a", "config": CONFIG}),
    ("POST", "/connectors", {"name": "a", "config": CONFIG}),
    ("POST", "/connectors", {"name": "b", "config": {**CONFIG, "name": "x"}}),
    ("POST", "/connectors", {"name": "b", "config": {"topic": "t"}}),
    ("POST", "/connectors", {"name": "p", "config": {**CONFIG, "limit": 7}, "initial_state": "PAUSED"}),
    ("POST", "/connectors", {"name": "s", "config": CONFIG, "initial_state": "stopped"}),
    *(
        ("GET", f"/connectors/{name}{path}")
        for name in ("a", "p", "s", "no")
        for path in (
            "",
            "/config",
            "/status",
            "/offsets",
            "/tasks/0/status",
            "/tasks/9/status",
            "/tasks/x/status",
        )
    ),
    ("GET", "/connectors/a/tasks-config"),
    ("GET", "/connectors/no/tasks"),
    ("GET", "/connectors/no/topics"),
    ("PUT", "/connectors/no/topics/reset"),
    ("GET", "/connectors?expand=info&expand=status"),
    ("GET", "/connectors?expand=other"),
    ("PUT", "/connectors/no/config", {}),
    ("PUT", "/connectors/n/config", {**CONFIG, "name": "q"}),
    ("PUT", "/connectors/n/config", CONFIG),
    ("PUT", "/connectors/n/config", {**CONFIG, "limit": "8"}),
    ("PATCH", "/connectors/n/config", {"limit": None, "new": True}),
    ("PATCH", "/connectors/no/config", {}),
    ("PUT", "/connectors/a/pause"),
    ("PUT", "/connectors/a/resume"),
    ("PUT", "/connectors/no/pause"),
    ("PUT", "/connectors/no/resume"),
    ("POST", "/connectors/a/restart"),
    ("POST", "/connectors/a/restart?includeTasks=true"),
    ("POST", "/connectors/no/restart?includeTasks=true"),
    ("POST", "/connectors/a/tasks/0/restart"),
    ("POST", "/connectors/a/tasks/x/restart"),
    ("PATCH", "/connectors/a/offsets", OFFSETS),
    ("DELETE", "/connectors/a/offsets"),
    ("PATCH", "/connectors/s/offsets", {"offsets": []}),
    ("PATCH", "/connectors/s/offsets", {}),
    ("PATCH", "/connectors/s/offsets", OFFSETS),
    ("GET", "/connectors/s/offsets"),
    ("DELETE", "/connectors/s/offsets"),
    ("GET", "/connectors/s/offsets"),
    ("PUT", "/connector-plugins/Other/config/validate", CONFIG),
    ("GET", "/connector-plugins/no/config"),
    ("PUT", "/admin/loggers/a.b", {"level": "debug"}),
    ("GET", "/admin/loggers/a.b"),
    ("GET", "/admin/loggers/none.such"),
    ("PUT", "/admin/loggers/a.b", {"level": "nope"}),
    ("PUT", "/admin/loggers/a.b", {}),
    ("PUT", "/admin/loggers/a.b?scope=cluster", {"level": "TRACE"}),
    ("GET", "/admin/loggers/a.b"),
    ("PUT", "/connectors/a/stop"),
    ("DELETE", "/connectors/a"),
    ("DELETE", "/connectors/a"),
    ("GET", "/connectors/a"),
]
AFTER = {
    "/connectors/a/pause": "PAUSED",
    "/connectors/a/resume": "RUNNING",
    "/connectors/a/restart": "RUNNING",
    "/connectors/a/restart?includeTasks=true": "RUNNING",
    "/connectors/a/tasks/0/restart": "RUNNING",
    "/connectors/a/stop": "STOPPED",
}
"""The state of `a` to wait for after a request."""
MENDED: list[tuple[Request, int]] = [
    (("POST", "/connectors", [1]), 400),
    (("POST", "/connectors", {"name": "b"}), 400),
    (("POST", "/connectors", {"name": "b", "config": CONFIG, "extra": 1}), 400),
    (("POST", "/connectors", {"name": "b", "config": CONFIG, "initial_state": "asleep"}), 400),
    (("PATCH", "/connectors/s/offsets", {"offsets": "x"}), 400),
    (
        (
            "PUT",
            "/connectors/no/stop",
        ),
        404,
    ),
    (("POST", "/connectors/no/restart"), 404),
    (("POST", "/connectors/no/tasks/0/restart"), 404),
]
"""Requests to which Java answers 500, with our status."""


@pytest.fixture(scope="module")
def logd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogdProcess]:
    with LogdProcess(tmp_path_factory.mktemp("logd")) as process:
        yield process


@contextmanager
def worker(folder: Path, bootstrap: str, line: list[str]) -> Iterator[httpx.Client]:
    port = free_port()
    settings = {
        "bootstrap.servers": bootstrap,
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "offset.storage.file.filename": folder / "offsets",
        "listeners": f"http://127.0.0.1:{port}",
        "plugin.discovery": "only_scan",
    }
    file = folder / "worker.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    with (folder / "worker.log").open("wb") as log:
        process = subprocess.Popen([*line, str(file)], stdout=log, stderr=log)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=100) as client:
            wait_for(lambda: _answers(client, process))
            yield client
    finally:
        process.kill()
        process.wait()


def _answers(client: httpx.Client, process: subprocess.Popen[bytes]) -> bool:
    assert process.poll() is None, "the worker has ended"
    try:
        return client.get("/health").status_code == 200
    except httpx.TransportError:
        return False


@pytest.fixture(scope="module")
def workers(logd: LogdProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[httpx.Client]]:
    """Yield clients of a Java worker and of ours."""
    class_path = f"{classes_of('CountingSource', LIBS)}{os.pathsep}{LIBS}/*"
    main = "org.apache.kafka.connect.cli.ConnectStandalone"
    java = ["java", *QUICK, "-cp", class_path, main]
    ours = [sys.executable, "-m", "connect", "standalone"]
    with worker(tmp_path_factory.mktemp("java"), logd.bootstrap, java) as one:
        with worker(tmp_path_factory.mktemp("ours"), logd.bootstrap, ours) as other:
            yield [one, other]


def answer(client: httpx.Client, request: Request) -> tuple[int, Any]:
    method, path, *body = request
    text = json.dumps(body[0]) if body else None
    if text is not None and client.base_url.port != _JAVA_PORT.get("port"):
        text = text.replace(JAVA, OURS)
    response = client.request(method, path, content=text, headers={"content-type": "application/json"})
    shown = response.text.replace(OURS, JAVA).replace(f"127.0.0.1:{client.base_url.port}", "WORKER")
    shown = re.sub(r'"last_modified":\d+', '"last_modified":1', shown)
    # What a connector says about offsets that it keeps itself.
    shown = re.sub(
        r"The Connect framework-managed offsets.*?\"", 'The offsets for this connector have been set"', shown
    )
    shown = re.sub(r"The offsets for this connector have been \w+.*?\"", 'The offsets have been set"', shown)
    document = json.loads(shown) if shown else None
    if isinstance(document, list):
        document = sorted(document, key=json.dumps)
    return response.status_code, (document, response.headers.get("location", "").partition("/connectors")[2])


_JAVA_PORT: dict[str, int | None] = {}


@pytest.mark.timeout(300)
@needs_jar("connect-runtime")
def test_documents_and_statuses_are_javas(workers: list[httpx.Client]) -> None:
    java, ours = workers
    _JAVA_PORT["port"] = java.base_url.port
    for request in REQUESTS:
        expected, actual = answer(java, request), answer(ours, request)
        if expected[0] == 404 and (request[0] != "GET" or "/status" in request[1]):
            # Java has other words on each of these paths.
            expected, actual = (404, None), (actual[0], None)
        assert actual == expected, request
        for client in workers:
            _settle(client, AFTER.get(request[1], ""))
    for request, status in MENDED:
        assert (answer(java, request)[0], answer(ours, request)[0]) == (500, status), request


def _settle(client: httpx.Client, state: str) -> None:
    """Wait until no state is on its way, and `a` has this one: Java answers before its tasks have changed."""
    statuses: Any = None

    def settled() -> bool:
        nonlocal statuses
        statuses = client.get("/connectors?expand=status").json()
        for name, each in statuses.items():
            connector, tasks = each["status"]["connector"]["state"], each["status"]["tasks"]
            if any(task["state"] != connector for task in tasks) or (not tasks and connector == "RUNNING"):
                return False
            if name == "a" and state not in ("", connector):
                return False
        return True

    try:
        wait_for(settled, 30)
    except AssertionError as e:
        raise AssertionError(f"{client.base_url}: {statuses}") from e


@pytest.mark.timeout(300)
@needs_jar("connect-runtime")
def test_reports_of_the_connectors_own_keys_are_javas(workers: list[httpx.Client]) -> None:
    bad = {**CONFIG, "name": "v", "limit": "7", "secret": "hush"}
    reports = []
    for client, plugin in zip(workers, (JAVA, OURS), strict=True):
        path = f"/connector-plugins/{plugin}/config/validate"
        entries = client.put(path, json={**bad, "connector.class": plugin}).json()["configs"]
        own = {each["value"]["name"]: each for each in entries}
        reports.append({key: own[key] for key in ("topic", "limit", "secret")})
    assert reports[1] == reports[0]
