"""ConnectService: what the service class of Kafka's system tests does, over workers of ours.

The scenarios of this folder are those of kafkatest's `connect_rest_test` and `connect_distributed_test`: the
same requests to the REST interface, each to any worker, in the same order, with the same conditions.
"""

from __future__ import annotations

import json
import random
import signal
from collections import Counter
from pathlib import Path
from typing import Any

from tests.support.connect_group import ConnectGroup
from tests.support.waiting import wait_for

JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
_RETRIED = (404, 409)
_RETRY_SECONDS = 30.0


class RestError(Exception):
    """An answer whose status is 400 or more."""

    def __init__(self, status: int, document: Any) -> None:
        super().__init__(status, document)
        self.status = status


class ConnectService:
    """Workers of a group, as system tests start, ask and bounce them."""

    def __init__(self, bootstrap: str, folder: Path, *, nodes: int, protocol: str = "sessioned") -> None:
        self.group = ConnectGroup(bootstrap, folder)
        self.group.settings |= {
            "key.converter": JSON_CONVERTER,
            "value.converter": JSON_CONVERTER,
            "key.converter.schemas.enable": "true",
            "value.converter.schemas.enable": "true",
            "connect.protocol": protocol,
        }
        self._random = random.Random(29)
        self.nodes = [self.group.start() for _ in range(nodes)]
        self.wait_until(lambda: all(self.is_listening(node) for node in self.nodes))
        self.requests = 0

    def is_listening(self, node: str) -> bool:
        """Return True if a worker answers, and has joined its group."""
        try:
            return self.group.ask("GET", f"{node}/health")[0] == 200
        except OSError:
            return False

    def rest(self, path: str, body: Any = None, *, method: str = "GET", node: str | None = None) -> Any:
        """Send one request to a worker, to any if none is named. Raises RestError."""
        node = node or self._random.choice(self.nodes)
        status, document = self.group.ask(method, node + path, body)
        if status >= 400:
            raise RestError(status, document)
        return document

    def retry(self, path: str, body: Any = None, *, method: str = "GET", node: str | None = None) -> Any:
        """Send a request, again while the group rebalances or the connector is not there yet."""
        answers: list[Any] = []

        def is_answered() -> bool:
            try:
                answers.append(self.rest(path, body, method=method, node=node))
            except RestError as e:
                if e.status not in _RETRIED:
                    raise
            return bool(answers)

        wait_for(is_answered, _RETRY_SECONDS)
        return answers[0]

    def create(self, config: dict[str, Any]) -> Any:
        return self.retry("/connectors", {"name": config["name"], "config": config}, method="POST")

    def delete(self, name: str) -> None:
        self.retry(f"/connectors/{name}", method="DELETE")

    def status(self, name: str, node: str | None = None) -> dict[str, Any] | None:
        try:
            return self.rest(f"/connectors/{name}/status", node=node)
        except RestError:
            return None

    def is_in(self, state: str, name: str, tasks: int = 1, node: str | None = None) -> bool:
        """Return True if a connector and its tasks are in a state."""
        status = self.status(name, node)
        return (
            status is not None
            and status["connector"]["state"] == state
            and [task["state"] for task in status["tasks"]] == [state] * tasks
        )

    def wait_all(self, state: str, name: str, tasks: int = 1) -> None:
        """Wait until every worker shows a connector and its tasks in a state."""
        for node in self.nodes:
            self.wait_until(lambda node=node: self.is_in(state, name, tasks, node))

    def connector_state(self, name: str) -> str | None:
        status = self.status(name)
        return None if status is None else status["connector"]["state"]

    def task_state(self, name: str, task: int = 0) -> str | None:
        status = self.status(name)
        states = {row["id"]: row["state"] for row in status["tasks"]} if status else {}
        return states.get(task)

    def wait_until(self, condition: Any) -> Any:
        return self.group.wait_until(condition)

    def bounce(self, node: str, *, is_clean: bool) -> None:
        """Stop a worker, at once or in order, and start it again at its address."""
        code = self.group.end(node, signal.SIGTERM if is_clean else signal.SIGKILL)
        assert not is_clean or code == 0, self.group.log(node).read_text()
        self.group.start(node)
        self.wait_until(lambda: self.is_listening(node))

    def lines(self, name: str) -> list[dict[str, Any]]:
        """Return what the tasks of a verifiable connector have printed, on every worker."""
        texts = [line for node in self.nodes for line in self.group.log(node).read_text().splitlines()]
        documents = [json.loads(text) for text in texts if text.startswith("{") and text.endswith("}")]
        return [each for each in documents if each.get("name") == name and "seqno" in each]

    def committed(self, name: str) -> list[dict[str, Any]]:
        return [line for line in self.lines(name) if line.get("committed")]

    def sent(self, name: str) -> list[dict[str, Any]]:
        return [line for line in self.lines(name) if "committed" not in line]

    def flushed(self, name: str) -> list[dict[str, Any]]:
        return [line for line in self.lines(name) if line.get("flushed")]

    def received(self, name: str) -> list[dict[str, Any]]:
        return [line for line in self.lines(name) if "flushed" not in line]

    def close(self) -> None:
        for url in list(self.group.workers):
            self.group.end(url)


def numbers(lines: list[dict[str, Any]], task: int) -> Counter[int]:
    """Return how often each number of a task is among the lines."""
    return Counter(line["seqno"] for line in lines if line["task"] == task)
