"""A log moving to another folder, step by step, with every step failing or being the last one once."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.records import build_batch, decode_records, iter_batches
from logd.config.topic import TopicConfig
from logd.storage import Log, LogDirectory
from logd.storage.errors import NoRoom
from logd.storage.future_log import FutureLog, discard_future, promote
from logd.storage.names import parse_future_directory
from logd.storage.testing import FaultyDisk
from tests.support.depth import deep

NOW = 1_700_000_000_000
CONFIG = TopicConfig(segment_bytes=600, index_interval_bytes=0)


class Two:
    """Two folders on disks that may fail, `log` in the first one, and its move to the second one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.disks = FaultyDisk(), FaultyDisk()
        self.open()
        self.source.create_log("t", 0, topic_id=bytes(range(16)), config=CONFIG, now_ms=NOW)
        self.log = self.source.logs["t", 0]
        self.fill(40)
        self.future = FutureLog(self.log, self.source, self.target)

    def open(self) -> None:
        self.source, self.target = (self.folder(name) for name in "ab")

    def folder(self, name: str) -> LogDirectory:
        return LogDirectory.open(
            self.path / name,
            node_id=1,
            cluster_id="cluster",
            config_for=lambda topic: CONFIG,
            now_ms=NOW,
            disk=self.disks["ab".index(name)],
        )

    def kill(self) -> None:
        for folder in (self.source, self.target):
            for log in folder.logs.values():
                log.release()
            folder._lock.release()
        self.disks = FaultyDisk(), FaultyDisk()

    def fill(self, count: int) -> None:
        for _ in range(count):
            number = self.log.log_end_offset
            batch = build_batch([(NOW, b"k", b"%d" % number, ())])
            assert self.log.writer.append(batch, 0, NOW).base_offset == number

    def steps(self) -> Iterator[str]:
        """Run the move, and yield the name of each step before it runs; the log grows between the steps."""
        future = self.future
        yield "create"
        future.create()
        self.target.arriving["t", 0] = self.log
        for number in range(2):
            self.fill(5)
            future.begin_round()
            done = False
            while not done:
                yield f"copy {number}"
                done = future.copy(1000)[1]
            self.fill(5)
            yield f"sync {number}"
            future.sync()
            yield f"checkpoint {number}"
            self.target.start_checkpoint()()
        yield "finish"
        self.fill(2)
        assert future.finish() is not None
        yield "sync names"
        self.target.sync()

    def move(self) -> None:
        for _ in self.steps():
            pass


def values(log: Log) -> list[int]:
    return [
        int(record[3] or b"")
        for chunk in log.reader.batches(log.log_start_offset)
        for position, _ in iter_batches(chunk)
        for record in decode_records(chunk, position)
    ]


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Two]:
    made = Two(tmp_path)
    yield made
    made.kill()


def test_the_removal_offset_moves_along(two: Two) -> None:
    two.log.removals.raise_to(7)
    two.log.compaction.save_removals()
    two.move()
    assert two.log.removal_offset == 7
    two.kill()
    two.open()
    assert two.target.logs["t", 0].removal_offset == 7


def test_a_log_moves_and_goes_on(two: Two) -> None:
    two.move()
    assert two.source.logs == {}
    assert two.target.logs == {("t", 0): two.log}
    assert two.log.directory == two.path / "b" / "t-0"
    end = two.log.log_end_offset
    assert values(two.log) == list(range(end))
    two.fill(30)
    two.log.flusher.flush()
    assert two.log.recovery_point == end + 30
    two.kill()
    two.open()
    assert values(two.target.logs["t", 0]) == list(range(end + 30))
    assert ("t", 0) not in two.source.logs


def test_what_goes_meanwhile_goes_in_the_copy(two: Two) -> None:
    two.future.create()
    two.future.begin_round()
    assert two.future.copy(10**9)[1]
    copied = {path.name for path in two.future.path.glob("*.log")}
    deletions = two.log.shortening.delete_records_before(20)
    for deletion in deletions:
        deletion.hide()
    assert two.future.finish() is None  # not without another look
    two.target.arriving["t", 0] = two.log
    for _ in range(2):
        two.future.begin_round()
        assert two.future.copy(10**9)[1]
        two.future.sync()
    assert {path.name for path in two.future.path.glob("*.log")} < copied
    assert two.future.finish() is not None
    assert values(two.log) == list(range(20, 40))
    files = {path.name for path in two.log.directory.glob("*.log")}
    assert files == {f"{segment.base_offset:020}.log" for segment in two.log.segments.row}
    assert two.future.size == two.log.size


def test_it_does_not_move_before_the_new_disk_has_what_the_old_one_has(two: Two) -> None:
    two.future.create()
    two.target.arriving["t", 0] = two.log
    two.future.begin_round()
    two.future.copy(10**9)
    assert two.future.finish() is None
    two.future.begin_round()
    two.future.copy(10**9)
    two.future.sync()
    two.fill(1)
    two.log.flusher.flush()
    assert two.future.finish() is None
    two.fill(1)
    flush = two.log.flusher.start_flush()
    assert flush is not None
    two.future.begin_round()
    two.future.copy(10**9)
    two.future.sync()
    assert two.future.finish() is None
    flush.run()
    two.log.flusher.finish_flush(flush)
    assert two.future.finish() is not None


def test_too_much_is_left_for_another_round(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("logd.storage.future_log.LAST_BYTES_MAX", 100)
    two.future.create()
    two.target.arriving["t", 0] = two.log
    two.future.begin_round()
    two.future.copy(10**9)
    two.future.sync()
    two.fill(5)
    assert not two.future.is_near
    assert two.future.finish() is None


def reopened(two: Two) -> Log:
    """Start again as a broker does after a crash, and return the one log that is there then."""
    two.kill()
    two.open()
    for path in two.target.futures.get(("t", 0), []):
        if ("t", 0) in two.source.logs:
            discard_future(two.target, path).run()
        else:
            promote(two.target, "t", 0, path, CONFIG, NOW)
    (log,) = [*two.source.logs.values(), *two.target.logs.values()]
    return log


COUNT = 60
"""More than there are steps; those beyond are the whole move."""


@deep
@pytest.mark.parametrize("last", range(COUNT))
def test_a_crash_before_any_step(tmp_path: Path, last: int) -> None:
    two = Two(tmp_path)
    for number, _ in enumerate(two.steps()):
        if number == last:
            break
    end = two.log.log_end_offset
    log = reopened(two)
    assert values(log) == list(range(end))
    two.kill()


def operations(tmp_path: Path) -> list[tuple[int, str]]:
    """Return the disk operations of a whole move, each with its disk's index."""
    two = Two(tmp_path)
    for disk in two.disks:
        disk.done.clear()
    two.move()
    done = [(index, name) for index, disk in enumerate(two.disks) for name, _ in disk.done]
    two.kill()
    return done


class Nth(FaultyDisk):
    """Fails the nth operation, and all after it."""

    def __init__(self, fails_at: int, error: int) -> None:
        super().__init__()
        self.left = fails_at
        self.error = error

    def check(self, operation: str, path: Path) -> None:
        self.left -= 1
        if self.left < 0:
            raise OSError(self.error, "failing", str(path))
        super().check(operation, path)


@deep
@pytest.mark.parametrize("disk", [0, 1])
@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
def test_any_operation_failing_loses_nothing(tmp_path: Path, disk: int, error: int) -> None:
    whole = [name for index, name in operations(tmp_path / "whole") if index == disk]
    for number in range(0, len(whole), max(len(whole) // 12, 1)):
        two = Two(tmp_path / str(number))
        failing = Nth(number, error)
        for folder in (two.source, two.target):
            if folder is (two.source, two.target)[disk]:
                folder._disk = failing
        if disk == 0:
            two.log.disk = failing
        acknowledged = two.log.log_end_offset
        try:
            for _ in two.steps():
                acknowledged = two.log.log_end_offset
        except (KafkaError, NoRoom) as caught:
            code = getattr(caught, "code", ErrorCode.KAFKA_STORAGE_ERROR)
        else:
            code = ErrorCode.KAFKA_STORAGE_ERROR
            assert failing.left >= 0, "went by unnoticed"
        assert code is ErrorCode.KAFKA_STORAGE_ERROR
        assert (two.source.failure is None) or disk == 0
        log = reopened(two)
        assert values(log)[:acknowledged] == list(range(acknowledged))
        two.kill()


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("t-0." + "a" * 32 + "-future", ("t", 0)),
        ("a.b-c-12." + "0" * 32 + "-future", ("a.b-c", 12)),
        ("t-0-future", None),
        ("t-0.abc-future", None),
        ("t-0." + "a" * 32 + "-delete", None),
        ("t-0", None),
    ],
)
def test_names_of_future_folders(name: str, key: Any) -> None:
    assert parse_future_directory(name) == key


def test_a_topics_name_may_be_too_long(two: Two) -> None:
    two.log.topic = "x" * 240
    with pytest.raises(ValueError, match="longer than 255"):
        FutureLog(two.log, two.source, two.target)
