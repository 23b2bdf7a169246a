"""`task.isolation=process`: what a plugin does to its process is nobody else's matter."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from connect.runtime import State, Worker
from connect.runtime.isolation.process_task import ProcessTask
from connect.runtime.standalone_service import StandaloneService
from tests.support.waiting import until, wait_for

PLUGIN = """
import ctypes, os, re, sys, time
from connect.api import SourceConnector, SourceRecord, SourceTask

class Task(SourceTask):
    def start(self, config):
        self.config = config
        print("a line on stdout")
        at = self.context.offsets.offset({"p": 1})
        self.n = at["n"] + 1 if at else 0

    def poll(self):
        ill = os.path.exists(self.config["ill.file"])
        does = self.config.get("does") if ill else None
        if does == "exit":
            os._exit(7)
        if does == "segfault":
            ctypes.string_at(0)
        if does == "raise":
            raise ZeroDivisionError("poll fails")
        if does == "hold the GIL":
            open(self.config["ill.file"] + "-now", "w").close()
            re.match(r"(a+)+$", "a" * 64 + "b")
        if does == "leak":
            import resource
            resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
            leaked = []
            while True:
                leaked.append(bytearray(64 << 20))
        time.sleep(0.001)
        self.n += 1
        return [SourceRecord(self.config["topic"], {"n": self.n - 1}, source_partition={"p": 1},
                             source_offset={"n": self.n - 1})]

    def statistics(self):
        return {"at": self.n}

class Sick(SourceConnector):
    VERSION = "1.5"
    task_class = Task
"""


@pytest.fixture
def ill(tmp_path, monkeypatch) -> Path:
    """Make the plugin importable; once the file exists, its task does what it is configured to do."""
    (tmp_path / "sick_plugin.py").write_text(textwrap.dedent(PLUGIN))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path / "ill"
    sys.modules.pop("sick_plugin", None)


def sick(name: str, topic: str, ill: Path, **more: str) -> dict[str, str]:
    return {
        "name": name,
        "connector.class": "sick_plugin:Sick",
        "topic": topic,
        "ill.file": str(ill),
        "task.isolation": "process",
        "errors.restart.max": "0",
        "topic.creation.default.partitions": "1",
        "topic.creation.default.replication.factor": "1",
    } | {key.replace("_", "."): value for key, value in more.items()}


def task_of(worker: Worker, name: str) -> dict:
    return worker.report(name)["tasks"][0]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


ENDS = {
    "exit": "The process of task exit-0 ended with exit code 7",
    "segfault": "The process of task segfault-0 ended by signal 11 (SIGSEGV)",
    "leak": "MemoryError",
    "raise": "ZeroDivisionError: poll fails",
}


async def test_sick_plugins_disturb_nobody_and_their_ends_are_in_the_status(kit, topic, ill):
    def is_working(name: str) -> bool:
        return task_of(worker, name).get("records_acked", 0) > 3

    async with Worker(kit.config()) as worker:
        for does in ("well", *ENDS):
            await worker.start_connector(sick(does, f"{topic}-{does}", ill, does=does))
        await until(lambda: all(map(is_working, ("well", *ENDS))))
        ill.touch()
        await until(lambda: all(task_of(worker, does)["state"] == "FAILED" for does in ENDS))
        for does, reason in ENDS.items():
            assert reason in task_of(worker, does)["trace"]
        await until(lambda: not any("pid" in task_of(worker, does) for does in ENDS))
        before = task_of(worker, "well")["records_acked"]
        await until(lambda: task_of(worker, "well")["records_acked"] > before)
        assert task_of(worker, "well")["state"] == "RUNNING"
        ill.unlink()
        await worker.restart_task("exit", 0)
        await until(lambda: is_working("exit"))
    numbers = await asyncio.to_thread(kit.numbers, f"{topic}-exit")
    assert sorted(set(numbers)) == list(range(max(numbers) + 1))


async def test_a_task_that_holds_the_gil_is_killed_at_its_stop(kit, topic, ill):
    config = kit.config(task_shutdown_graceful_timeout_ms="100", offset_flush_timeout_ms="100")
    async with Worker(config) as worker:
        await worker.start_connector(sick("sick", topic, ill, does="hold the GIL"))
        await until(lambda: task_of(worker, "sick").get("records_acked", 0) > 3)
        pid = task_of(worker, "sick")["pid"]
        ill.touch()
        await until(ill.with_name("ill-now").exists)
        last = worker._connectors["sick"].tasks[0]
        await worker.restart_connector("sick")
        assert not is_alive(pid)
        assert "its process was killed" in (last.status.trace or "")
        ill.unlink()


async def test_pause_resume_stop_statistics_topics_and_version_cross_the_pipe(kit, topic, ill, caplog):
    async with Worker(kit.config()) as worker:
        await worker.start_connector(sick("c", topic, ill))
        await until(lambda: task_of(worker, "c").get("records_acked", 0) > 3)
        (task,) = worker._connectors["c"].tasks
        assert isinstance(task, ProcessTask)
        assert task.version == "1.5" == task_of(worker, "c")["version"]
        assert worker.topics["c"] == {topic}
        worker.reset_topics("c")
        await until(lambda: worker.topics.get("c") == {topic})
        worker.pause_connector("c")
        await until(lambda: task_of(worker, "c")["state"] == "PAUSED")
        worker.resume_connector("c")
        await until(lambda: task_of(worker, "c")["state"] == "RUNNING")
        await until(lambda: task.plugin_values().get("at", 0) > 3)
        assert task.values()["source-task-metrics"]["source-record-write-total"] > 3
        assert task.queued()
        pid = task.pid
        worker.stop_connector("c")
        await until(lambda: worker.report("c")["connector"]["state"] == "STOPPED")
        await until(lambda: not is_alive(pid))
        assert task.status.state is State.UNASSIGNED
    numbers = await asyncio.to_thread(kit.numbers, topic)
    assert numbers == list(range(len(numbers)))  # flushed and committed: none twice


async def test_secrets_are_not_in_the_process_list(kit, topic, ill):
    async with Worker(kit.config()) as worker:
        await worker.start_connector(sick("c", topic, ill, password="sesame-1234"))
        await until(lambda: task_of(worker, "c")["state"] == "RUNNING")
        process = Path(f"/proc/{task_of(worker, 'c')['pid']}")
        listed = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
    assert b"c-0" in listed
    assert b"sesame" not in listed


async def test_a_process_that_is_killed_or_stopped_from_outside_fails_its_task(kit, topic, ill):
    async with Worker(kit.config()) as worker:
        await worker.start_connector(sick("c", topic, ill))
        for number, reason in (
            (signal.SIGKILL, "ended by signal 9 (SIGKILL)"),
            (signal.SIGTERM, "was stopped by a signal (SIGTERM)"),
        ):
            await until(lambda: task_of(worker, "c").get("records_acked", 0) > 3)
            os.kill(task_of(worker, "c")["pid"], number)
            await until(lambda: task_of(worker, "c")["state"] == "FAILED")
            assert reason in task_of(worker, "c")["trace"]
            await worker.restart_task("c", 0)
        await until(lambda: task_of(worker, "c")["state"] == "RUNNING")


@pytest.mark.parametrize("does", ["", "hold the GIL"])
def test_a_task_ends_with_its_worker(kit, topic, ill, tmp_path, does):
    kit.settings["task.isolation"] = "process"
    config = sick("c", topic, ill, does=does)
    del config["task.isolation"]
    worker = tmp_path / "worker.properties"
    worker.write_text("".join(f"{key}={value}\n" for key, value in kit.settings.items()))
    output = os.open(kit.output, os.O_WRONLY | os.O_CREAT)
    process = subprocess.Popen(
        [sys.executable, "-m", "connect", "standalone", worker, _file(tmp_path, config)],
        cwd=tmp_path, stdout=output, stderr=subprocess.STDOUT,
    )  # fmt: skip
    os.close(output)
    try:
        reports = lambda: [e["connectors"][0]["tasks"] for e in kit.events() if e["event"] == "status"]  # noqa: E731
        wait_for(lambda: any(tasks and "pid" in tasks[0] for tasks in reports()))
        pid = next(tasks[0]["pid"] for tasks in reports() if tasks and "pid" in tasks[0])
        wait_for(lambda: kit.numbers(topic))
        ill.touch()
        process.kill()
        process.wait()
        wait_for(lambda: not is_alive(pid))
    finally:
        process.kill()
        process.wait()


def _file(folder: Path, config: dict[str, str]) -> Path:
    path = folder / "c.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in config.items()))
    return path


def test_files_go_in_and_out_as_in_threads(kit, rows, topic, tmp_path):
    source = kit.source(rows(2000), topic, task_isolation="process")
    sink = kit.sink(tmp_path / "out", topic, tasks_max="2", task_isolation="process")

    async def run():
        async with Worker(kit.config()) as worker:
            await worker.start_connector(source)
            await worker.start_connector(sink)
            await worker.wait_done()
            assert not worker.failed, worker.status()

    asyncio.run(run())
    assert sorted(kit.numbers(topic)) == list(range(2000))
    written = [line for p in (tmp_path / "out" / topic).iterdir() for line in p.read_text().splitlines()]
    assert len(written) == 2000


async def test_rate_limits_reach_the_process_at_its_start_and_while_it_runs(kit, topic, ill):
    def rate() -> dict[str, float]:
        return worker._connectors["sick"].tasks[0].rate.values()

    async with Worker(kit.config()) as worker:
        limited = sick("sick", topic, ill, rate_limit_records_per_second="1")
        await worker.start_connector(limited)
        await until(lambda: rate()["records_per_second_max"] == 1 and rate()["throttle-time-ms-total"] > 0)
        pid = task_of(worker, "sick")["pid"]
        await StandaloneService(worker).put_config(
            "sick", {**limited, "rate.limit.records.per.second": "99999"}
        )
        await until(lambda: rate()["records_per_second_max"] == 99_999)
        assert task_of(worker, "sick")["pid"] == pid, "a limit restarts nothing"
