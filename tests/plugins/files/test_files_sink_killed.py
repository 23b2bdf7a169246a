"""The files sink under SIGKILL at each of its steps on the disk, and on a disk that is full."""

import errno
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from connect.api import ConnectError, PartitionsFenced, TopicPartition
from connect.runtime.json_records import json_batches
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


class FullFile(io.BytesIO):
    """A file on a disk without room."""

    def write(self, *_):
        raise OSError(errno.ENOSPC, "No space left on device")

    writelines = write


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
                patch.setattr("plugins.files.sink.Path.open", lambda *_: FullFile())
            else:
                patch.setattr("os.fsync", full)
            with pytest.raises(ConnectError, match=r"t\+0\+0*3\.jsonl cannot be written: .*No space left"):
                sink.flush()
        assert numbers(tmp_path) == [0, 1, 2]
        sink.flush()
    assert numbers(tmp_path) == list(range(6))


def test_a_commit_in_a_gap_that_compaction_made_after_a_kill(tmp_path):
    """A worker is killed after it wrote offsets 8 to 11; 8 and 9 are compacted away, and 10 is committed."""
    tp, config = TopicPartition("t", 0), {"path": str(tmp_path), "file.records.max": "8"}
    with SinkRun(FilesSink, config) as sink:
        at(sink, 0)
        sink.put(records(0, 8))
        sink.flush()
        sink.put(records(8, 12))
        sink.flush()
        sink.crash()
    sink = SinkRun(FilesSink, config)
    sink.task.open([tp])
    at(sink, 8)  # an empty part: `put` is not called
    sink.task.flush({tp: 10})
    assert numbers(tmp_path) == list(range(8)), "what was committed stays"
    at(sink, 10)
    sink.task.put_json(json_batches(records(10, 14)))
    sink.task.flush({tp: 14})
    assert numbers(tmp_path) == [*range(8), *range(10, 14)]
    sink.task.close([tp])


def test_files_of_an_earlier_attempt_with_other_cuts_give_way(tmp_path):
    """Half of what a killed worker wrote into files of 4 is compacted away before it is written again."""
    tp, config = TopicPartition("t", 0), {"path": str(tmp_path), "file.records.max": "4"}
    killed = SinkRun(FilesSink, config)
    at(killed, 2)
    killed.put(records(2, 16))
    killed.flush()
    killed.crash()
    sink = SinkRun(FilesSink, config)
    sink.task.open([tp])
    at(sink, 2)
    sink.task.put_json(json_batches([r for r in records(2, 16) if r.offset in (3, 13, 14)]))
    sink.task.flush({tp: 16})
    assert numbers(tmp_path) == [3, 13, 14]
    sink.task.close([tp])


def test_files_of_an_earlier_topic_and_of_others_stay(tmp_path):
    tp, config = TopicPartition("t", 0), {"path": str(tmp_path), "file.records.max": "8"}
    for topic_id in (b"a" * 16, b"b" * 16):
        sink = SinkRun(FilesSink, config)
        sink.task.open([tp])
        at(sink, 0, topic_id)
        sink.task.put_json(json_batches(records(0, 12)))
        sink.task.flush({tp: 12})
        sink.task.close([tp])
    (tmp_path / "t" / "notes.txt").write_text("")
    (tmp_path / "t" / "t+1+00000000000000000000+YmJiYmJiYmJiYmJiYmJiYg.jsonl").write_text("")
    sink = SinkRun(FilesSink, config)
    sink.task.open([tp])
    at(sink, 0, b"b" * 16)
    sink.task.flush({tp: 12})
    left = sorted(path.name for path in (tmp_path / "t").iterdir())
    assert left == [
        "notes.txt",
        "t+0+00000000000000000000+YWFhYWFhYWFhYWFhYWFhYQ.jsonl",
        "t+0+00000000000000000008+YWFhYWFhYWFhYWFhYWFhYQ.jsonl",
        "t+1+00000000000000000000+YmJiYmJiYmJiYmJiYmJiYg.jsonl",
    ]
    sink.task.close([tp])


def test_who_has_no_claim_any_more_removes_nothing(tmp_path):
    tp, config = TopicPartition("t", 0), {"path": str(tmp_path)}
    killed = SinkRun(FilesSink, config)
    killed.put(records(8, 12))
    killed.flush()
    killed.crash()
    zombie, owner = SinkRun(FilesSink, config), SinkRun(FilesSink, config)
    zombie.task.open([tp])
    at(zombie, 8)
    zombie.task.flush({tp: 8})
    owner.task.open([tp])
    with pytest.raises(PartitionsFenced):
        zombie.task.flush({tp: 12})
    assert numbers(tmp_path) == [8, 9, 10, 11]
    owner.task.close([tp])


def at(sink, offset, topic_id=bytes(16)):
    """Give the sink what a worker gives it before a `put`: position and topic id."""
    sink.task.context.positions[TopicPartition("t", 0)] = offset
    sink.task.context.topic_ids["t"] = topic_id
