"""WorkerScript: a group of workers, requests to it, and what the connectors of `plugins` have noted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.connect.kafka_workers.plugins import MonitorableSink, MonitorableSource, reference
from tests.support.connect_group import ConnectGroup

STRING = "org.apache.kafka.connect.storage.StringConverter"


class WorkerScript:
    """Workers of one group on a broker, which a test starts, asks and ends."""

    def __init__(self, bootstrap: str, folder: Path, **settings: str) -> None:
        self.folder = folder
        self.group = ConnectGroup(bootstrap, folder)
        self.group.settings |= {"value.converter": STRING}
        self.group.settings |= {name.replace("_", "."): value for name, value in settings.items()}

    def start(self, count: int = 1) -> WorkerScript:
        """Start workers, and wait until each is in the group."""
        urls = [self.group.start() for _ in range(count)]
        self.group.wait_until(lambda: all(self.is_healthy(url) for url in urls))
        return self

    @property
    def urls(self) -> list[str]:
        """The addresses of the workers that run."""
        return list(self.group.workers)

    def is_healthy(self, url: str) -> bool:
        return self.health(url)[0] == 200

    def health(self, url: str | None = None) -> tuple[int, Any]:
        try:
            return self.ask("GET", "/health", url=url)
        except OSError:
            return 0, None

    def ask(self, method: str, path: str, body: Any = None, url: str | None = None) -> tuple[int, Any]:
        """Return the status and the document of one answer."""
        return self.group.ask(method, (url or self.urls[0]) + path, body)

    def do(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request, again while the group rebalances; AssertionError unless it succeeds."""
        return self.group.do(method, self.urls[0] + path, body)

    def put(self, name: str, config: Mapping[str, str]) -> Any:
        return self.do("PUT", f"/connectors/{name}/config", config)

    def wait_until(self, condition: Any) -> Any:
        return self.group.wait_until(condition)

    def events_file(self, name: str) -> Path:
        return self.folder / f"{name}.events"

    def events(self, name: str, kind: str | None = None) -> list[dict[str, Any]]:
        """Return what a connector's events file has; all kinds without `kind`."""
        file = self.events_file(name)
        *lines, _ = file.read_text().split("\n") if file.exists() else [""]
        events = [json.loads(line) for line in lines]
        return [event for event in events if kind is None or event["event"] == kind]

    def is_blocked(self, name: str) -> bool:
        return bool(self.events(name, "block"))

    def source(self, name: str, topic: str, **more: str) -> dict[str, str]:
        """Return the config of a monitorable source of one task."""
        return self._config(name, MonitorableSource, {"topic": topic, "throughput": "100"}, more) | {
            "topic.creation.default.partitions": "1",
            "topic.creation.default.replication.factor": "1",
        }

    def sink(self, name: str, topics: str, kind: type = MonitorableSink, **more: str) -> dict[str, str]:
        """Return the config of a monitorable sink of one task."""
        return self._config(name, kind, {"topics": topics}, more)

    def _config(
        self, name: str, kind: type, own: Mapping[str, str], more: Mapping[str, str]
    ) -> dict[str, str]:
        return {
            "connector.class": reference(kind),
            "tasks.max": "1",
            "events": str(self.events_file(name)),
            **own,
            **{key.replace("_", "."): value for key, value in more.items()},
        }

    def status(self, name: str) -> dict[str, Any]:
        return self.group.status(self.urls[0], name)

    def states(self, name: str) -> tuple[str | None, list[str]]:
        """Return the state of a connector, None without one, and those of its tasks."""
        status = self.status(name)
        if not status:
            return None, []
        return status["connector"]["state"], [task["state"] for task in status["tasks"]]

    def wait_state(self, name: str, connector: str, *tasks: str) -> None:
        """Wait until a connector and all of its tasks are in these states."""
        self.wait_until(lambda: self.states(name) == (connector, list(tasks)))

    def wait_running(self, name: str, tasks: int = 1) -> None:
        self.wait_state(name, "RUNNING", *["RUNNING"] * tasks)

    def delete(self, name: str) -> None:
        """Delete a connector, and wait until it has no status."""
        self.do("DELETE", f"/connectors/{name}")
        self.wait_until(lambda: self.ask("GET", f"/connectors/{name}/status")[0] == 404)

    def close(self) -> None:
        for url in self.urls:
            self.group.end(url)
