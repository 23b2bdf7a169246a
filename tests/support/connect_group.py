"""Workers of a Connect group as processes, each in the same folder, and requests to their REST interfaces."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kafka_client.http.client import HttpClient
from tests.support.ports import free_port

SECONDS = 100.0
_groups = itertools.count()


class ConnectGroup:
    """Workers of one group, in a folder each."""

    def __init__(self, bootstrap: str, folder: Path) -> None:
        self.folder = folder
        self.name = f"connect-group-{next(_groups)}"
        self.settings = {
            "bootstrap.servers": bootstrap,
            "group.id": self.name,
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
            "offset.flush.interval.ms": "20",
            "session.timeout.ms": "2000",
            "heartbeat.interval.ms": "200",
            "rebalance.timeout.ms": "10000",
            "scheduled.rebalance.max.delay.ms": "1000",
            "offset.storage.partitions": "2",
            "status.storage.partitions": "2",
        }
        for kind in ("config", "offset", "status"):
            self.settings[f"{kind}.storage.topic"] = f"{self.name}-{kind}"
            self.settings[f"{kind}.storage.replication.factor"] = "1"
        self.workers: dict[str, subprocess.Popen[bytes]] = {}
        """By their addresses."""
        self._client = HttpClient(timeout=SECONDS)

    def start(self, url: str | None = None) -> str:
        """Start a worker and return its address."""
        url = url or f"http://127.0.0.1:{free_port()}"
        file = self.write_settings(url)
        with self.log(url).open("ab") as log:
            self.workers[url] = subprocess.Popen(
                [sys.executable, "-m", "connect", "distributed", file, "--log-level", "INFO"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        return url

    def write_settings(self, url: str) -> Path:
        """Write the settings of the worker at an address, and return their file."""
        file = self.folder / f"worker-{url.rpartition(':')[2]}.properties"
        settings = {**self.settings, "listeners": url}
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        return file

    def log(self, url: str) -> Path:
        return self.folder / f"worker-{url.rpartition(':')[2]}.log"

    def end(self, url: str, number: int = signal.SIGKILL) -> int:
        process = self.workers.pop(url)
        process.send_signal(number)
        return process.wait(SECONDS)

    def ask(self, method: str, url: str, document: Any = None) -> tuple[int, Any]:
        """Return an answer's status and document."""
        body = None if document is None else json.dumps(document).encode()
        answer = self._client.request(method, url, body, {"content-type": "application/json"})
        return answer.status, json.loads(answer.body) if answer.body else None

    def do(self, method: str, url: str, document: Any = None) -> Any:
        """Send a request, again while the group rebalances, and return the answer's document."""
        result: list[Any] = []

        def done() -> bool:
            try:
                status, answer = self.ask(method, url, document)
            except OSError:
                return False
            if status == 409 and "already exists" not in answer["message"]:
                return False
            assert status < 300, (status, answer)
            result.append(answer)
            return True

        self.wait_until(done)
        return result[-1]

    def status(self, url: str, name: str) -> dict[str, Any]:
        try:
            code, document = self.ask("GET", f"{url}/connectors/{name}/status")
        except OSError:
            return {}
        return document if code == 200 else {}

    def owners(self, url: str, *names: str) -> dict[str, list[str]]:
        """Return the workers of each connector's tasks, if all of the tasks are RUNNING."""
        statuses = {name: self.status(url, name) for name in names}
        return {
            name: [task["worker_id"] for task in status.get("tasks", []) if task["state"] == "RUNNING"]
            for name, status in statuses.items()
        }

    def wait_until(self, condition: Callable[[], Any]) -> Any:
        deadline = time.monotonic() + SECONDS
        while not (value := condition()):
            for url, process in self.workers.items():
                assert process.poll() is None, self.log(url).read_text()
            if time.monotonic() > deadline:
                raise AssertionError("\n".join(self.log(url).read_text() for url in self.workers))
            time.sleep(0.02)
        return value
