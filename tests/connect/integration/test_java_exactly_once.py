"""Exactly-once tasks that move between Apache Kafka's Connect worker and ours, both with KIP-618 enabled."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

from tests.connect.integration.test_exactly_once_source import records, topic_exists
from tests.connect.integration.test_java_worker import answers, start_java
from tests.support.connect_group import ConnectGroup
from tests.support.java import needs_jar

pytestmark = needs_jar("connect-runtime")
TWIN = """
import time
from connect.api import Config, SourceConnector, SourceRecord, SourceTask, schema, setting


class NumbersConfig(Config):
    topic: str = setting("Topic.")


class NumbersTask(SourceTask):
    def start(self, config):
        self.topic, self.partition = config["topic"], {"id": config["id"]}
        self.next = (self.context.offsets.offset(self.partition) or {"next": 0})["next"]

    def poll(self):
        time.sleep(0.01)
        number, self.next = self.next, self.next + 1
        return [
            SourceRecord(
                self.topic,
                number,
                self.partition["id"],
                source_partition=self.partition,
                source_offset={"next": self.next},
                key_schema=schema.string(),
                value_schema=schema.int64(),
            )
        ]


class NumbersSource(SourceConnector):
    CONFIG = NumbersConfig
    VERSION = "1"
    task_class = NumbersTask

    def task_configs(self, max_tasks):
        return [{**self.config, "id": str(task)} for task in range(max_tasks)]

    def exactly_once_support(self, config):
        return True
"""
"""The twin of tests/java/NumbersSource.java."""


def install_twin(folder: Path) -> None:
    """Write the plugin with its entry point, as an installed package has it."""
    (folder / "numbers_twin.py").write_text(TWIN)
    facts = folder / "numbers_twin-1.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: numbers-twin\nVersion: 1\n")
    (facts / "entry_points.txt").write_text(
        "[millstream.connectors]\nNumbersSource = numbers_twin:NumbersSource\n"
    )


def numbers(group: ConnectGroup, topic: str) -> dict[bytes, list[int]]:
    """Return the numbers of each task that readers of committed records see, in order."""
    by_task: dict[bytes, list[int]] = {}
    for part in records(group, topic).values():
        for key, value in part:
            by_task.setdefault(key, []).append(json.loads(value))
    return by_task


def task_counts(group: ConnectGroup) -> list[bytes]:
    """Return the records of task counts of the connector `v`, each of which fences the tasks of before."""
    topic = group.settings["config.storage.topic"]
    return [value for key, value in records(group, topic)[0] if key == b"tasks-fencing-v"]


def test_tasks_move_from_javas_worker_to_ours(logd, topic, tmp_path: Path, monkeypatch):
    """The Java leader fences for our tasks, then ours for Java's; each number of each task is there once.

    The records of offsets and task counts are read by both: other bytes would repeat or lose numbers.
    """
    twin = tmp_path / "twin"
    twin.mkdir()
    install_twin(twin)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(twin), os.environ.get("PYTHONPATH")))))
    group = ConnectGroup(logd.bootstrap, tmp_path)
    group.settings["exactly.once.source.support"] = "enabled"
    config = {"connector.class": "NumbersSource", "topic": topic, "tasks.max": "2"}
    config["exactly.once.support"] = "required"
    config |= {"topic.creation.default.partitions": "1", "topic.creation.default.replication.factor": "1"}
    try:
        java = start_java(group, "NumbersSource")
        group.wait_until(lambda: answers(group, java))
        group.do("PUT", f"{java}/connectors/v/config", config)
        group.wait_until(lambda: group.owners(java, "v")["v"] == [java.partition("://")[2]] * 2)
        ours = group.start()
        both = {url.partition("://")[2] for url in (java, ours)}
        group.wait_until(lambda: set(group.owners(ours, "v")["v"]) == both)  # the Java leader fences
        group.do("PUT", f"{java}/connectors/v/config", {**config, "transaction.boundary.interval.ms": "9"})
        group.wait_until(lambda: set(group.owners(ours, "v")["v"]) == both)
        at = progress(group, topic)
        group.wait_until(
            lambda: all(now > then for now, then in zip(progress(group, topic), at, strict=True))
        )
        group.end(java)
        group.wait_until(lambda: group.owners(ours, "v")["v"] == [ours.partition("://")[2]] * 2)
        group.do("PUT", f"{ours}/connectors/v/config", {**config, "tasks.max": "1"})
        # Of the two tasks of before one may end first: one that runs is not yet the one of the new config.
        group.wait_until(lambda: len(task_counts(group)) == 3)
        group.wait_until(lambda: [each["state"] for each in group.status(ours, "v")["tasks"]] == ["RUNNING"])
        group.do("PUT", f"{ours}/connectors/v/stop")
        group.wait_until(lambda: group.status(ours, "v").get("tasks") == [])
        assert topic_exists(group, topic)
        for task, values in numbers(group, topic).items():
            assert values == list(range(len(values))), (task, values[:20])
        assert task_counts(group) == [b'{"task-count":2}', b'{"task-count":2}', b'{"task-count":1}']
        assert group.end(ours, signal.SIGTERM) == 0
    finally:
        for url in list(group.workers):
            group.end(url)


def progress(group: ConnectGroup, topic: str) -> list[int]:
    return [len(values) for _, values in sorted(numbers(group, topic).items())]
