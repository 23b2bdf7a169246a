"""The files sink under SIGKILL at each of its steps on the disk, and on a disk that is full."""

import errno
import json
import subprocess
import sys
from pathlib import Path

import pytest

from connect.api import ConnectError, TopicPartition
from connect.testing import SinkRun
from plugins.files import FilesSink
from tests.plugins.files.killed_sink import records

SCRIPT = Path(__file__).with_name("killed_sink.py")
ROOT = Path(__file__).parents[3]
STEPS = range(0, 60, 7)


def numbers(folder):
    """Return the numbers in whole files, in the order of the files."""
    paths = sorted(folder.glob("t/*"))
    return [json.loads(line)["n"] for path in paths for line in path.read_text().splitlines()]


@pytest.mark.parametrize("step", STEPS)
def test_each_record_is_there_once_after_a_kill_at_any_step(tmp_path, step):
    killed = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path), "json", str(step)],
        capture_output=True, text=True, timeout=120, cwd=ROOT, env={"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert killed.returncode in (0, -9), killed.stderr
    committed = int(killed.stdout.split()[-1]) if killed.stdout else 0
    assert numbers(tmp_path)[:committed] == list(range(committed))  # what was committed is whole
    with SinkRun(FilesSink, {"path": str(tmp_path), "file.records.max": "5"}) as sink:
        sink.put(records(committed, 13))
        sink.flush()
    assert numbers(tmp_path) == list(range(13))
    assert not (tmp_path / ".claims").exists()


@pytest.mark.parametrize("at", ["write", "fsync"])
def test_a_full_disk_fails_the_task_and_loses_nothing(tmp_path, monkeypatch, at):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with SinkRun(FilesSink, {"path": str(tmp_path)}) as sink:
        sink.put(records(0, 3))
        sink.flush()
        sink.put(records(3, 6))
        with monkeypatch.context() as patch:
            if at == "write":
                patch.setattr(sink.task, "_write", full)
            else:
                patch.setattr("os.fsync", full)
            with pytest.raises(ConnectError, match=r"t\+0\+0*3\.jsonl cannot be written: .*No space left"):
                sink.flush()
        assert numbers(tmp_path) == [0, 1, 2]
        sink.flush()
    assert numbers(tmp_path) == list(range(6))


@pytest.mark.xfail(strict=True, reason="the file of the killed worker keeps records that come again")
def test_a_commit_in_a_gap_that_compaction_made_after_a_kill(tmp_path):
    """A worker is killed after it wrote offsets 8 to 11; 8 and 9 are compacted away, and 10 is committed."""
    config = {"path": str(tmp_path), "file.records.max": "8"}
    killed = SinkRun(FilesSink, config)
    killed.put(records(8, 12))
    killed.flush()
    killed.crash()
    with SinkRun(FilesSink, config) as sink:
        sink.task.context.positions[TopicPartition("t", 0)] = 10
        sink.put(records(10, 12))
        sink.flush()
    numbers_there = numbers(tmp_path)
    assert [number for number in numbers_there if number >= 10] == [10, 11]
