"""A plugin in `plugin.path` is upgraded while the worker and its other connectors run."""

import asyncio
import os
import textwrap
from pathlib import Path

import pytest

from connect.errors import ConnectError
from connect.runtime import Worker
from tests.support.waiting import until

PLUGIN = """
    import time
    from connect.api import SourceConnector, SourceRecord, SourceTask
    from answers import NUMBER

    class Task(SourceTask):
        def start(self, config):
            self.topic = config["topic"]

        def poll(self):
            time.sleep(0.01)
            return [SourceRecord(self.topic, {"n": NUMBER})]

    class Answering(SourceConnector):
        VERSION = str(NUMBER)
        task_class = Task
"""


def drop(folder: Path, number: int) -> None:
    """Put a version into plugin.path, in one step as a package manager does."""
    new = folder.with_name(f"new-{number}")
    new.mkdir(parents=True)
    (new / "answering.py").write_text(textwrap.dedent(PLUGIN))
    (new / "answers.py").write_text(f"NUMBER = {number}")
    if folder.exists():
        os.rename(folder, folder.with_name(f"old-{number}"))
    os.rename(new, folder)


def answering(name: str, topic: str, isolation: str) -> dict[str, str]:
    return {
        "name": name,
        "connector.class": "Answering",
        "topic": topic,
        "task.isolation": isolation,
        "topic.creation.default.partitions": "1",
        "topic.creation.default.replication.factor": "1",
    }


def versions(worker: Worker, name: str) -> list[str]:
    report = worker.report(name)
    return [report["connector"]["version"], *(task["version"] for task in report["tasks"])]


def acked(worker: Worker, name: str) -> int:
    return worker.report(name)["tasks"][0].get("records_acked", 0)


@pytest.mark.parametrize("isolation", ["thread", "process"])
async def test_a_restarted_connector_runs_the_new_version_and_the_others_go_on(
    kit, topic, tmp_path, isolation
):
    path = tmp_path / "plugins-folder" / "answering"
    hidden = path.parent.parent / "staging" / "answering"
    drop(hidden, 1)
    path.parent.mkdir()
    hidden.rename(path)
    kit.settings["plugin.path"] = str(path.parent)
    async with Worker(kit.config()) as worker:
        for name in ("old", "new"):
            await worker.start_connector(answering(name, f"{topic}-{name}", isolation))
        await until(lambda: all(acked(worker, name) for name in ("old", "new")))
        (task,) = worker._connectors["old"].tasks
        drop(hidden, 2)
        os.rename(path, tmp_path / "old-version")
        os.rename(hidden, path)
        before = acked(worker, "old")
        await worker.restart_connector("new")
        await until(lambda: versions(worker, "new") == ["2", "2"] and acked(worker, "new"))
        assert versions(worker, "old") == ["1", "1"]
        assert worker._connectors["old"].tasks == [task]
        await until(lambda: acked(worker, "old") > before)

        (path / "answering.py").write_text("1 / 0  # connect.api")
        with pytest.raises(ConnectError, match="Answering"):
            await worker.restart_connector("new")
        before = acked(worker, "new")
        await until(lambda: acked(worker, "new") > before)  # the broken third version has stopped nothing
    assert set(await asyncio.to_thread(kit.numbers, f"{topic}-old")) == {1}
    assert set(await asyncio.to_thread(kit.numbers, f"{topic}-new")) == {1, 2}
