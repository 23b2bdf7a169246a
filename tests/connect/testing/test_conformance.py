"""The conformance suites pass sound plugins, and each planted fault fails the test that is about it."""

import inspect
import json
import threading
from pathlib import Path

import pytest

from connect.api import (
    Config,
    SinkConnector,
    SinkTask,
    SourceConnector,
    SourceRecord,
    SourceTask,
    TopicPartition,
    setting,
    sink,
    source,
)
from connect.testing.conformance import SinkConformance, SourceConformance
from plugins.files import FilesSink, FilesSource


class TestFilesSource(SourceConformance):
    connector = FilesSource
    blocks = False
    poll_max = 4

    def config(self, folder):
        return {"file": str(folder / "lines.json"), "topic": "t", "format": "json", "batch.size": "4"}

    def add(self, folder, numbers):
        with (folder / "lines.json").open("a") as file:
            file.writelines(f'{{"number": {n}}}\n' for n in numbers)


class TestFilesSink(SinkConformance):
    connector = FilesSink
    exactly_once = True

    def config(self, folder):
        return {"path": str(folder), "format": "json"}

    def read(self, folder):
        files = [path for path in folder.rglob("*.json*") if path.is_file() and not path.name.startswith(".")]
        return [json.loads(line)["number"] for path in files for line in path.read_text().splitlines()]


class DirectoryConfig(Config):
    """A folder with a file per record."""

    folder: str = setting("The folder.")


@source(name="folder", config=DirectoryConfig, batch_size=10)
def files(config, state, stopping):
    while not stopping.is_set():
        for path in sorted(Path(config.folder).glob("*.json")):
            if path.name > state.get("after", ""):
                state["after"] = path.name
                yield SourceRecord("t", json.loads(path.read_text()))
        yield None


class TestGenerator(SourceConformance):
    connector = files
    poll_max = 10

    def config(self, folder):
        return {"folder": str(folder)}

    def add(self, folder, numbers):
        for number in numbers:
            (folder / f"{number:06}.json").write_text(json.dumps({"number": number}))


@sink(name="folder", config=DirectoryConfig)
def write(config, records):
    for record in records:
        (Path(config.folder) / f"{record.partition}-{record.offset}").write_text(str(record.value["number"]))


class TestFunction(SinkConformance):
    connector = write
    exactly_once = True

    def config(self, folder):
        return {"folder": str(folder)}

    def read(self, folder):
        return [int(path.read_text()) for path in folder.iterdir()]


class LinesTask(SourceTask):
    """A source of a file's lines, sound until a subclass breaks it."""

    def start(self, config):
        self.path = Path(config["file"])
        self.next = (self.context.offsets.offset({}) or {}).get("line", 0)
        self.stopped = threading.Event()

    def lines(self):
        return self.path.read_text().splitlines()[self.next :] if self.path.exists() else []

    def poll(self):
        lines = self.lines()[:3]
        records = []
        for line in lines:
            self.next += 1
            records.append(self.record(int(line)))
        if not lines:
            self.stopped.wait(0.01)
        return records

    def record(self, number):
        return SourceRecord("t", {"number": number}, source_partition={}, source_offset={"line": self.next})

    def stop(self):
        self.stopped.set()


class LinesConfig(Config):
    """Lines."""

    file: str = setting("The file.")


def suite_of(base, **attributes):
    """Return the source suite for a task of LinesTask with these methods in place of its own."""
    task = type("Task", (LinesTask,), attributes)
    connector = type(
        "Lines",
        (SourceConnector,),
        {"CONFIG": LinesConfig, "task_class": task, "task_configs": lambda self, n: [self.config]},
    )

    def add(self, folder, numbers):
        with (folder / "lines").open("a") as file:
            file.writelines(f"{n}\n" for n in numbers)

    config = {"config": lambda self, folder: {"file": str(folder / "lines")}, "add": add}
    return type("Suite", (base,), {"connector": connector, "poll_max": 3, **config})()


def failures(suite, tmp_path):
    """Return the names of the suite's tests that fail."""
    failed = []
    for name, test in inspect.getmembers(suite, inspect.ismethod):
        if name.startswith("test_"):
            folder = tmp_path / name
            folder.mkdir()
            try:
                test(folder)
            except pytest.skip.Exception:
                pass
            except (Exception, pytest.fail.Exception):
                failed.append(name.removeprefix("test_"))
    return failed


class TestSourceFaults:
    def test_a_sound_source_passes(self, tmp_path):
        assert failures(suite_of(SourceConformance), tmp_path) == []

    def test_a_source_that_forgets_its_offset(self, tmp_path):
        def start(self, config):
            LinesTask.start(self, config)
            self.next = 0

        failed = failures(suite_of(SourceConformance, start=start), tmp_path)
        assert "a_restart_resumes_behind_the_committed_offsets" in failed

    def test_a_source_whose_offset_runs_ahead(self, tmp_path):
        def record(self, number):
            return SourceRecord(
                "t", {"number": number}, source_partition={}, source_offset={"line": self.next + 1}
            )

        failed = failures(suite_of(SourceConformance, record=record), tmp_path)
        assert "each_offset_is_a_place_to_resume_from" in failed

    def test_a_source_that_reads_all_at_once(self, tmp_path):
        def poll(self):
            records = [self.record(int(line)) for line in self.lines()]
            self.next += len(records)
            return records

        assert "a_poll_is_bounded" in failures(suite_of(SourceConformance, poll=poll), tmp_path)

    def test_a_source_that_leaves_a_thread(self, tmp_path, monkeypatch):
        monkeypatch.setattr("connect.testing.threads._END_SECONDS", 0.1)
        ended = threading.Event()

        def start(self, config):
            LinesTask.start(self, config)
            threading.Thread(target=ended.wait, daemon=True).start()

        try:
            assert "nothing_stays_after_stop" in failures(suite_of(SourceConformance, start=start), tmp_path)
        finally:
            ended.set()

    def test_a_source_whose_poll_ignores_stop(self, tmp_path, monkeypatch):
        monkeypatch.setattr("connect.testing.source_conformance._STOP_SECONDS", 0.5)
        ended = threading.Event()

        def poll(self):
            return LinesTask.poll(self) if self.lines() else (ended.wait(2), [])[1]

        failed = failures(suite_of(SourceConformance, poll=poll, stop=lambda self: None), tmp_path)
        ended.set()
        assert "stop_ends_a_poll" in failed


class BufferTask(SinkTask):
    """A sink that appends numbers to a file at each flush, sound until a subclass breaks it."""

    def start(self, config):
        self.path, self.buffer = Path(config["file"]), []

    def put(self, records):
        self.buffer += [record.value["number"] for record in records]

    def flush(self, offsets):
        with self.path.open("a") as file:
            file.writelines(f"{n}\n" for n in self.buffer)
        self.buffer = []


def sink_suite_of(*, once=False, **attributes):
    task = type("Task", (BufferTask,), attributes)
    connector = type("Buffer", (SinkConnector,), {"CONFIG": LinesConfig, "task_class": task})

    def read(self, folder):
        return [int(line) for line in (folder / "lines").read_text().splitlines()]

    config = {"config": lambda self, folder: {"file": str(folder / "lines")}, "read": read}
    return type("Suite", (SinkConformance,), {"connector": connector, "exactly_once": once, **config})()


class TestSinkFaults:
    def test_a_sound_sink_passes(self, tmp_path):
        assert failures(sink_suite_of(), tmp_path) == []

    def test_a_sink_that_claims_exactly_once_and_repeats(self, tmp_path):
        assert failures(sink_suite_of(once=True), tmp_path) == ["a_crash_after_the_flush_loses_nothing"]

    def test_a_sink_that_allows_offsets_before_it_writes(self, tmp_path):
        failed = failures(sink_suite_of(flush=lambda self, offsets: None), tmp_path)
        assert "flushed_records_are_in_the_target" in failed

    def test_a_sink_that_counts_records_for_offsets(self, tmp_path):
        def put(self, records):
            for record in records:
                if record.offset == getattr(self, "next", record.offset):
                    self.next = record.offset + 1
                    self.buffer.append(record.value["number"])

        assert "gaps_between_offsets_are_no_gaps_in_the_target" in failures(sink_suite_of(put=put), tmp_path)

    def test_a_sink_that_keeps_its_target_after_close(self, tmp_path):
        assert failures(sink_suite_of(close=lambda self, partitions: 1 / 0), tmp_path)


def test_offsets_that_the_sink_sets_are_followed():
    """Records before an offset that the task has set in `open` are not put, as in a worker."""
    from connect.api import SinkRecord
    from connect.testing import SinkRun

    class Rewound(BufferTask):
        def open(self, partitions):
            self.context.offset({TopicPartition("t", 0): 3})

    connector = type("Buffer", (SinkConnector,), {"CONFIG": LinesConfig, "task_class": Rewound})
    with SinkRun(connector, {"file": "unused"}) as run:
        run.put([SinkRecord("t", 0, n, {"number": n}) for n in range(5)])
        assert run.task.buffer == [3, 4]
        run.task.buffer = []
