"""Task processes and plugin.path in a group: an upgrade over REST, and a killed worker whose task moves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.connect_group import ConnectGroup

PLUGIN = """
import json, time
from connect.api import SourceConnector, SourceRecord, SourceTask

class Task(SourceTask):
    def start(self, config):
        self.topic = config["topic"]
        at = self.context.offsets.offset({{"p": 1}})
        self.n = at["n"] + 1 if at else 0

    def poll(self):
        time.sleep(0.002)
        self.n += 1
        value = {{"n": self.n - 1, "by": {number}}}
        at = {{"n": self.n - 1}}
        return [SourceRecord(self.topic, value, source_partition={{"p": 1}}, source_offset=at)]

class Counting(SourceConnector):
    VERSION = "{number}.0"
    task_class = Task
"""


@pytest.fixture
def group(logd, tmp_path: Path) -> Iterator[ConnectGroup]:
    group = ConnectGroup(logd.bootstrap, tmp_path)
    group.settings["plugin.path"] = str(tmp_path / "path")
    group.settings["task.isolation"] = "process"
    yield group
    for url in list(group.workers):
        group.end(url)


def test_a_task_process_is_upgraded_and_moves_with_its_offsets(group, kit, topic, tmp_path):
    path = tmp_path / "path"
    for number in (1, 2):
        (tmp_path / f"counting-{number}").mkdir()
        (tmp_path / f"counting-{number}" / "counting.py").write_text(PLUGIN.format(number=number))
    path.mkdir()
    (tmp_path / "counting-1").rename(path / "counting-1")
    urls = [group.start(), group.start()]
    config = {
        "connector.class": "Counting",
        "topic": topic,
        "topic.creation.default.partitions": "1",
        "topic.creation.default.replication.factor": "1",
    }
    group.do("PUT", f"{urls[0]}/connectors/c/config", config)

    def runs(version: str, *owners: str) -> bool:
        status = group.status(urls[-1], "c")
        tasks = status["tasks"] if status else []
        return [(t["state"], t.get("version")) for t in tasks] == [("RUNNING", version)] and (
            not owners or tasks[0]["worker_id"] in owners
        )

    group.wait_until(lambda: runs("1.0") and kit.numbers(topic))
    (tmp_path / "counting-2").rename(path / "counting-2")
    group.do("POST", f"{urls[0]}/connectors/c/restart?includeTasks=true")
    group.wait_until(lambda: runs("2.0"))
    owner = group.status(urls[0], "c")["tasks"][0]["worker_id"]
    (killed,) = [url for url in urls if url.endswith(owner)]
    (other,) = [url for url in urls if url != killed]
    urls.remove(killed)
    before = len(kit.numbers(topic))
    group.end(killed)
    group.wait_until(lambda: runs("2.0", other.partition("://")[2]))
    group.wait_until(lambda: len(kit.numbers(topic)) > before + 10)
    numbers = kit.numbers(topic)
    assert sorted(set(numbers)) == list(range(max(numbers) + 1))
