"""The worker against logd: files in, files out, lifecycle, the command line."""

import asyncio
import json
import resource
import subprocess
import sys

import pytest

from connect.api import (
    Config,
    RangeSinkTask,
    SinkConnector,
    SinkTask,
    SourceConnector,
    SourceRecord,
    SourceTask,
)
from connect.errors import ConfigError, NotFound
from connect.runtime import State, Worker
from kafka_client import Admin, Client
from tests.support.depth import deep
from tests.support.waiting import until


def states(worker: Worker, name: str) -> list[str]:
    (report,) = [r for r in worker.status() if r["name"] == name]
    return [report["connector"]["state"], *(t["state"] for t in report["tasks"])]


@deep
def test_files_in_and_files_out(kit, rows, topic, tmp_path):
    source = kit.source(rows(5000), topic, csv_types="infer", timestamp_constant="0")
    source["topic.creation.default.cleanup.policy"] = "compact"
    sink = kit.sink(tmp_path / "out", topic, tasks_max="2")

    async def run():
        async with Worker(kit.config()) as worker:
            await worker.start_connector(source)
            await worker.start_connector(sink)
            await worker.wait_done()
            assert not worker.failed
            reports = {r["name"]: r for r in worker.status()}
        async with Client(kit.bootstrap) as client:
            admin = Admin(client)
            assert (await admin.describe_topics([topic]))[topic].partition_count == 3
            assert (await admin.describe_configs(topic))["cleanup.policy"].value == "compact"
        return reports

    reports = asyncio.run(run())
    (task,) = reports[source["name"]]["tasks"]
    assert (task["records_polled"], task["records_acked"], task["done"]) == (5000, 5000, True)
    assert sum(t["records_delivered"] for t in reports[sink["name"]]["tasks"]) == 5000
    records = kit.read(topic)
    assert {(time, key) for time, key, _ in records} == {(0, b"%d" % n) for n in range(5000)}
    files = (tmp_path / "out" / topic).iterdir()
    written = [line for path in files for line in path.read_text().splitlines()]
    assert sorted(json.loads(line)["n"] for line in written) == list(range(5000))


class FailsAtFirst(SourceConnector):
    """Its task fails until told otherwise."""

    broken = True

    class Task(SourceTask):
        def start(self, config):
            self.topic = config["topic"]

        def poll(self):
            if FailsAtFirst.broken:
                raise ZeroDivisionError("not yet")
            self.context.finished()
            return [SourceRecord(self.topic, {"n": -1})]

    task_class = Task


def test_a_failure_stays_where_it_is_and_a_restart_mends_it(kit, rows, topic):
    async def run():
        FailsAtFirst.broken = True
        async with Worker(kit.config()) as worker:
            await worker.start_connector(
                {"name": "bad", "connector.class": f"{__name__}:FailsAtFirst", "topic": topic}
            )
            name = await worker.start_connector(kit.source(rows(300), topic))
            await until(lambda: states(worker, "bad") == ["RUNNING", "FAILED"])
            await until(lambda: worker.status()[1]["tasks"][0]["done"])
            assert "not yet" in worker.status()[0]["tasks"][0]["trace"]
            assert worker.failed
            FailsAtFirst.broken = False
            await worker.restart_task("bad", 0)
            await worker.wait_done()
            assert not worker.failed
            worker.pause_connector(name)
            await worker.restart_connector(name)
            assert states(worker, name)[0] == "PAUSED"
            await worker.delete_connector("bad")
            with pytest.raises(NotFound):
                await worker.restart_task("bad", 0)
            with pytest.raises(NotFound):
                await worker.restart_task(name, 7)

    asyncio.run(run())
    assert sorted(kit.numbers(topic)) == list(range(-1, 300))


class Ranges(SinkConnector):
    """Takes every range as it comes."""

    class Task(RangeSinkTask):
        def start(self, config):
            assert self.context.group_id == "connect-ranges"

        def run_once(self, ends):
            return {tp: bounds.end for tp, bounds in ends.items()}

    CONFIG = Config
    task_class = Task


async def test_a_range_sink_is_offered_ends_and_the_group_follows(kit, rows, topic):
    async with Worker(kit.config()) as worker:
        await worker.start_connector(kit.source(rows(100), topic))
        await worker.start_connector(
            {
                "name": "ranges",
                "connector.class": f"{__name__}:Ranges",
                "topics": topic,
                "poll.interval.ms": "10",
            }
        )
        await worker.wait_done()
        assert not worker.failed
    async with Client(kit.bootstrap) as client:
        committed = await Admin(client).list_group_offsets("connect-ranges")
        assert sum(offset.offset for offset in committed.values()) == 100


def test_new_files_are_found_by_a_pattern(kit, topic, tmp_path):
    """Running tasks read new files without a restart, which would reset their counts."""

    async def run():
        config = kit.source("", topic, tasks_max="2", watch_interval_ms="20", stop_at_eof="false")
        del config["file"]
        config["files"] = f"{tmp_path}/*.csv"
        async with Worker(kit.config()) as worker:
            await worker.start_connector(config)
            for i in range(6):
                (tmp_path / f"new-{i}.csv").write_text(f"n\n{i}\n")
                await until(lambda i=i: len(offsets()) == i + 1)
            tasks = worker.status()[0]["tasks"]
            assert sum(task["records_polled"] for task in tasks) == 6

    def offsets():
        path = tmp_path / "offsets"
        return path.read_text().splitlines() if path.exists() else []

    asyncio.run(run())
    assert sorted(kit.numbers(topic)) == list(range(6))


@deep
def test_more_files_than_descriptors_are_read_and_followed(kit, topic, tmp_path):
    """300 files at `ulimit -n 256`, in tail mode: also what is appended to the first, and to a new one."""
    folder = tmp_path / "in"
    folder.mkdir()
    for i in range(300):
        (folder / f"{i:03}.csv").write_text(f"n\n{i}\n")
    config = kit.source("", topic, tasks_max="2", watch_interval_ms="20", stop_at_eof="false")
    del config["file"]
    process = kit.spawn(
        config | {"files": f"{folder}/*.csv", "batch.size": "1"}, options=("--status-interval", "0.1")
    )
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (256, 256))

    def polled() -> int:
        tasks = kit.events()[-1]["connectors"][0]["tasks"] if len(kit.events()) > 1 else []
        return sum(task["records_polled"] for task in tasks)

    kit.wait_until(lambda: polled() == 300, process)
    with (folder / "000.csv").open("a") as file:
        file.write("300\n")
    (folder / "new.csv").write_text("n\n301\n")
    kit.wait_until(lambda: polled() == 302, process)
    assert kit.terminate(process) == 0
    assert sorted(kit.numbers(topic)) == list(range(302))


async def test_configs_that_cannot_be_are_refused_at_once(kit, topic):
    async with Worker(kit.config()) as worker:
        good = kit.source("x.csv", topic)
        for change in ({"csv.types": "guess"}, {"tasks.max": "0"}, {"transforms": "a"}, {"topic": ""}):
            if change == {"topic": ""}:
                del good["topic"]
            with pytest.raises(ConfigError):
                await worker.start_connector(good | {k: v for k, v in change.items() if v})
        with pytest.raises(NotFound, match="no connector"):
            await worker.start_connector({"name": "n", "connector.class": "NoSuchThing"})
        assert worker.status() == []
        await worker.start_connector(kit.source("/nowhere/x.csv", topic))
        await until(lambda: states(worker, f"source-{topic}") == ["RUNNING", State.FAILED])
        with pytest.raises(ConfigError, match="another connector"):
            await worker.start_connector(kit.source("y.csv", topic))


@deep
def test_the_command_line_reports_and_ends_cleanly(kit, rows, topic):
    path = rows(1000)
    process = kit.spawn(kit.source(path, topic, stop_at_eof="false"), options=("--status-interval", "0.05"))
    kit.wait_until(lambda: kit.committed_line() == 1001, process)
    kit.wait_until(lambda: any(e["event"] == "status" for e in kit.events()), process)
    assert kit.terminate(process) == 0
    events = kit.events()
    assert events[0]["event"] == "started"
    assert events[0]["connectors"] == [f"source-{topic}"]
    assert events[-1]["event"] == "stopped"
    assert not events[-1]["failed"]
    assert events[-1]["connectors"][0]["tasks"][0]["records_acked"] == 1000
    assert {e["event"] for e in events} == {"started", "status", "stopped"}

    with path.open("a") as file:
        file.write("1000,more\n")
    kit.finish(kit.source(path, topic))
    assert sorted(kit.numbers(topic)) == list(range(1001))  # a clean end leaves nothing to do twice


@deep
def test_a_failed_task_is_the_exit_status(kit, topic):
    process = kit.spawn(kit.source("/nowhere/x.csv", topic), options=("--exit-when-done",))
    assert process.wait(60) == 1
    assert "/nowhere/x.csv does not exist" in kit.output.read_text()
    process = kit.spawn({"name": "x", "connector.class": "plugins.files:FilesSource"})
    assert process.wait(60) == 2
    assert "topic=: is required" in kit.output.read_text()


@deep
def test_settings_are_shown_and_checked(tmp_path):
    def connect(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "connect", *arguments], capture_output=True, text=True)

    shown = connect("config", "plugins.files:FilesSource")
    assert "| `csv.types` | string \\| infer |" in shown.stdout
    (tmp_path / "c.properties").write_text(
        "name=n\nconnector.class=FilesSource\ntasks.max=0\ntopic=t\nfile=a\ncsv.types=guess\n"
    )
    checked = connect("config", "plugins.files:FilesSource", "--check", str(tmp_path / "c.properties"))
    assert checked.returncode == 1
    report = json.loads(checked.stdout)
    wrong = [c["value"]["name"] for c in report["configs"] if c["value"]["errors"]]
    assert wrong == ["tasks.max", "csv.types"]
    assert connect("config", "nothing").returncode == 2
    assert connect("plugins").returncode == 0


class NoTask(SourceConnector):
    """Its author has forgotten the task."""


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"value.converter": "jsno"}, r"value\.converter=jsno"),
        ({"value.converter": "json", "value.converter.schemas.enable": "maybe"}, "maybe"),
        ({"topic.creation.default.partitions": "many"}, "many"),
        ({"producer.override.acks": "2"}, "acks=2"),
    ],
)
async def test_what_no_task_could_work_with_is_refused_at_once(kit, rows, topic, settings, words):
    async with Worker(kit.config()) as worker:
        with pytest.raises(ConfigError, match=words):
            await worker.start_connector(kit.source(rows(1), topic) | settings)


async def test_a_plugin_without_a_task_fails_by_itself(kit, topic):
    async with Worker(kit.config()) as worker:
        await worker.start_connector({"name": "none", "connector.class": f"{__name__}:NoTask"})
        await until(lambda: states(worker, "none") == ["RUNNING", "FAILED"])
        assert "task_class" in worker.status()[0]["tasks"][0]["trace"]


@deep
def test_lists_of_a_json_config_reach_the_plugin(kit, rows, topic, tmp_path):
    sink = kit.sink(tmp_path / "out", topic)
    kit.finish(kit.source(rows(10), topic), sink | {"topics": [topic, f"{topic}-none"]})
    written = [p.read_text() for p in (tmp_path / "out" / topic).iterdir()]
    assert sum(text.count("\n") for text in written) == 10


class LastWords(SinkConnector):
    """Its flush at the end fails."""

    class Task(SinkTask):
        def put(self, records):
            print("put", flush=True)

        def flush(self, offsets):
            raise OSError("disk full")

    task_class = Task


@deep
def test_a_last_flush_that_fails_is_told_by_the_exit_status(kit, rows, topic):
    kit.settings["offset.flush.interval.ms"] = "60000"
    sink = {"name": "last", "connector.class": f"{__name__}:LastWords", "topics": topic}
    process = kit.spawn(kit.source(rows(10), topic), sink)
    kit.wait_until(lambda: "put\n" in kit.output.read_text(), process)
    assert kit.terminate(process) == 1
    assert kit.events()[-1]["failed"] is True
