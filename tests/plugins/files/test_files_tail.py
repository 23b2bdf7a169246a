"""The files source on files that grow and patterns that match more and more."""

import gzip
import json
import os
import resource
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from plugins.files import FilesSource
from plugins.files.source import OPEN_MAX
from tests.support.depth import deep
from tests.support.waiting import wait_for


def settings(folder, **more):
    base = {"files": f"{folder}/*.txt", "topic": "t", "watch.interval.ms": "0"}
    return base | {k.replace("_", "."): str(v) for k, v in more.items()}


def poll_until(run, condition):
    def is_so() -> bool:
        run.poll()
        return condition()

    wait_for(is_so)


def fill(folder, count):
    for i in range(count):
        (folder / f"{i:03}.txt").write_text(f"{i}\n")


def append(path, text):
    with path.open("a") as file:
        file.write(text)


def until(run, expected):
    """Values polled, by all tasks, until as many as `wanted` have come."""
    values = []
    for _ in range(10_000):
        values += [r.value for task in range(len(run.tasks)) for r in run.poll(task)]
        if len(values) >= len(expected):
            break
    assert sorted(values) == sorted(expected)


@deep
def test_files_that_all_grow_hold_few_descriptors(start, tmp_path):
    """Descriptors stay few, where once every grown file kept one open while it waited to be read."""
    fill(tmp_path, 100)
    run = start(FilesSource, settings(tmp_path))
    (task,) = run.tasks
    assert task.statistics() == {
        "files": 100, "ready_files": 100, "waiting_files": 0, "open_files": 0, "open_files_max": OPEN_MAX + 1,
    }  # fmt: skip
    until(run, [str(i) for i in range(100)])
    for round in range(3):
        for i in range(100):
            append(tmp_path / f"{i:03}.txt", f"{round}\n")
        for _ in range(100):
            run.poll()
            for i in range(0, 100, 3):
                append(tmp_path / f"{i:03}.txt", f"{round}\n")
            statistics = task.statistics()
            assert statistics["open_files"] == open_descriptors(tmp_path) <= statistics["open_files_max"]
            assert statistics["ready_files"] + statistics["waiting_files"] == 100
    for path in tmp_path.glob("*.txt"):
        path.unlink()
    poll_until(run, lambda: task.statistics()["ready_files"] == 0)
    run.stop()
    assert open_descriptors(tmp_path) == 0


def open_descriptors(folder):
    """Return how many files of the folder this process has open."""
    descriptors = Path("/proc/self/fd")
    return sum(os.path.realpath(each).startswith(f"{folder}/") for each in descriptors.iterdir())


def test_files_read_to_their_end_hold_few_descriptors(start, tmp_path):
    """Files read to their end are closed, where once a task failed with `Too many open files` at 1024."""
    fill(tmp_path, 100)
    before = len(os.listdir("/proc/self/fd"))
    run = start(FilesSource, settings(tmp_path))
    until(run, [str(i) for i in range(100)])
    most = before + 32 + 4  # and the event loop's
    assert len(os.listdir("/proc/self/fd")) <= most
    append(tmp_path / "007.txt", "more\n")
    until(run, ["more"])
    append(tmp_path / "007.txt", "again\n")
    append(tmp_path / "099.txt", "and\n")
    until(run, ["again", "and"])
    assert len(os.listdir("/proc/self/fd")) <= most


def test_what_is_written_to_a_file_after_its_rotation_is_read(start, tmp_path):
    """Lines that a program writes to the rotated file are read through the file's open descriptor."""
    path = tmp_path / "a.txt"
    path.write_text("1\n")
    run = start(FilesSource, settings(tmp_path))
    until(run, ["1"])
    path.rename(tmp_path / "a.old")
    append(tmp_path / "a.old", "2\n")
    until(run, ["2"])
    append(tmp_path / "a.old", "3\n")
    append(tmp_path / "a.old", "half")
    path.write_text("4\n")
    until(run, ["3", "half", "4"])
    append(path, "5\n")
    until(run, ["5"])


def rotate(path):
    """Rename `path` to `.1`, and `.1` to `.2`."""
    first, second = (path.with_name(f"{path.name}.{n}") for n in (1, 2))
    if first.exists():
        first.rename(second)
    path.rename(first)


@pytest.mark.parametrize("is_matched", [False, True])
def test_files_that_are_rotated_again_and_again_are_read_once(start, tmp_path, is_matched):
    """No line is lost or doubled if the pattern matches the new names, and over restarts in between."""
    path = tmp_path / "a.txt"
    run = start(FilesSource, settings(tmp_path, files=f"{tmp_path}/a.txt*" if is_matched else path))
    expected = []
    for n in range(6):
        append(path, f"{n} first\n")
        until(run, [*expected, f"{n} first"])
        if n % 2:
            run.commit()
            run = run.again()
        append(path, f"{n} second\n")
        rotate(path)
        if n == 3:
            run.commit()
            run.stop()
            append(path, "while down\n")
            run = run.again()
            expected = [f"{n} second", "while down"]
        else:
            expected = [f"{n} second"]
        if n == 3:
            until(run, expected)
            expected = []
    append(path, "end\n")
    until(run, [*expected, "end"])
    for _ in range(20):
        assert run.poll() == []
    run.stop()


def test_a_file_that_is_replaced_while_the_worker_is_down_is_read_from_its_head(start, tmp_path):
    """Its first lines may be the same ones, and it may be longer."""
    path = tmp_path / "a.csv"
    path.write_text("n\n1\n2\n")
    run = start(FilesSource, settings(tmp_path, files=path))
    until_values = [{"n": "1"}, {"n": "2"}]
    assert [r.value for r in run.records()] == until_values
    run.commit()
    new = tmp_path / "new"
    new.write_text("n\n1\n2\n3\n")
    new.replace(path)
    run = run.again()
    assert [r.value for r in run.records()] == [*until_values, {"n": "3"}]
    run.stop()


def test_a_renamed_file_is_read_to_its_end_after_a_restart(start, tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("1\n")
    run = start(FilesSource, settings(tmp_path, files=path))
    until(run, ["1"])
    run.commit()
    append(path, "2\n")
    path.rename(tmp_path / "elsewhere")
    path.write_text("3\n")
    run = run.again()
    until(run, ["2", "3"])
    run.stop()


@deep
def test_more_files_than_descriptors(tmp_path):
    fill(tmp_path, 300)
    script = """
        import sys
        from connect.testing import SourceRun
        from plugins.files import FilesSource
        run = SourceRun(FilesSource, {"files": sys.argv[1] + "/*.txt", "topic": "t"}, max_tasks=2)
        found = set()
        while len(found) < 300:
            for task in range(2):
                found |= {record.value for record in run.poll(task)}
        run.stop()
    """
    limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))  # noqa: E731
    command = [sys.executable, "-c", textwrap.dedent(script), str(tmp_path)]
    ended = subprocess.run(command, preexec_fn=limit, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr


def test_new_matches_go_to_the_running_tasks(start, tmp_path, monkeypatch):
    """Running tasks get new files, where once each new file led to a new plan and restarted every task."""
    fill(tmp_path, 3)
    run = start(FilesSource, settings(tmp_path), max_tasks=2)
    monkeypatch.setattr(run.connector.context, "request_task_reconfiguration", pytest.fail)
    plan = run.task_configs
    until(run, ["0", "1", "2"])
    for i in range(3, 40):
        (tmp_path / f"{i:03}.txt").write_text(f"{i}\n")
    until(run, [str(i) for i in range(3, 40)])
    assert run._call(run.connector.task_configs, 2) == plan
    run.commit()
    again = run.again()
    (tmp_path / "040.txt").write_text("40\n")
    until(again, ["40"])
    again.stop()


def test_every_file_belongs_to_one_task(start, tmp_path):
    fill(tmp_path, 40)
    run = start(FilesSource, settings(tmp_path), max_tasks=3)
    shares = [set(), set(), set()]
    for _ in range(200):
        for task, share in enumerate(shares):
            share |= {r.value for r in run.poll(task)}
    assert all(shares)
    assert sorted(n for share in shares for n in share) == sorted(str(i) for i in range(40))


def test_finished_files_cost_no_reading(start, tmp_path, monkeypatch):
    """Files that do not change are not opened, only checked."""
    fill(tmp_path, 5)
    run = start(FilesSource, settings(tmp_path, watch_interval_ms=3_600_000))
    until(run, [str(i) for i in range(5)])
    monkeypatch.setattr("plugins.files.lines.Lines._open", lambda self: pytest.fail("opened"))
    for _ in range(10):
        assert run.poll() == []


@pytest.mark.parametrize("text", ["another\n", "x\n", "one line that is longer\n"])
def test_a_finished_file_that_is_replaced_is_read_from_its_head(start, tmp_path, text):
    """Replaced files are recognized by their contents, since the new file may get the old one's inode."""
    path = tmp_path / "a.txt"
    path.write_text("one two\n")
    run = start(FilesSource, settings(tmp_path))
    until(run, ["one two"])
    path.unlink()
    path.write_text(text)
    until(run, [text.strip()])


def test_a_file_written_in_place_is_read_from_its_head(start, tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("1\n2\n")
    run = start(FilesSource, settings(tmp_path))
    until(run, ["1", "2"])
    path.write_text("3\n4\n5\n")
    until(run, ["3", "4", "5"])


def test_half_a_row_is_read_once_it_is_whole(start, tmp_path):
    path = tmp_path / "a.csv"
    run = start(FilesSource, settings(tmp_path) | {"files": f"{tmp_path}/*.csv"})
    path.write_text('n,s\n1,"x')
    for _ in range(10):
        assert run.poll() == []
    append(path, "\ny")
    for _ in range(10):
        assert run.poll() == []
    append(path, '"\n2,')
    values = []
    while not values:
        values = [r.value for r in run.poll()]
    assert values == [{"n": "1", "s": "x\ny"}]
    append(path, "z\n")
    values = []
    while not values:
        values = [r.value for r in run.poll()]
    assert values == [{"n": "2", "s": "z"}]


def test_files_that_are_gone_are_forgotten_once_their_offsets_are_stored(start, tmp_path):
    """Files that come, are read and are removed must not be looked at for ever."""
    fill(tmp_path, 3)
    run = start(FilesSource, settings(tmp_path))
    until(run, ["0", "1", "2"])
    (tmp_path / "empty.txt").write_text("")
    poll_until(run, lambda: len(run.tasks[0].files) == 4)
    for path in tmp_path.iterdir():
        path.unlink()
    for _ in range(10):
        run.poll()
    assert len(run.tasks[0].files) >= 3
    run.commit()
    poll_until(run, lambda: run.tasks[0].files == [])


def test_an_archive_is_read_once_and_not_looked_at_again(start, tmp_path):
    run = start(FilesSource, settings(tmp_path) | {"files": f"{tmp_path}/*.gz"})
    for i in range(3):
        (tmp_path / f"{i}.gz").write_bytes(gzip.compress(b"%d\n" % i))
    until(run, ["0", "1", "2"])
    for _ in range(10):
        assert run.poll() == []
    assert run.tasks[0].files == []


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv"])
def test_blank_lines_are_not_read_again_after_a_restart(start, tmp_path, name):
    """Blank lines, which have no records, are not read again, where once their offset was never stored."""
    head = "n\n" if name.endswith("csv") else ""
    (tmp_path / name).write_text(head + "\n" * 1000)
    run = start(FilesSource, {"file": str(tmp_path / name), "topic": "t"})
    for _ in range(10):
        assert run.poll() == []
    run.commit()
    stored = run.store.offsets
    (offset,) = map(json.loads, stored.values())
    assert (offset["line"], offset["position"]) == (1000 + bool(head), 1000 + len(head))
