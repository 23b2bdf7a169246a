"""Tests of a failing disk: the log directory goes offline and reports why, and nothing unwritten is
acknowledged. `FaultyDisk` does the failing; below it are real files.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from typing import Any

import pytest

from kafka_client.errors import ErrorCode, KafkaError
from logd.storage.disk import PosixDisk, write_atomically
from logd.storage.log.rolling import roll
from logd.storage.testing import FaultyDisk


@pytest.fixture
def disk() -> FaultyDisk:
    return FaultyDisk()


@pytest.fixture
def faulty(new_store: Any, disk: FaultyDisk) -> Any:
    """A store on the faulty disk, with one record in it."""
    new_store.disk = disk
    new_store.open()
    new_store.append("safe")
    return new_store


def assert_offline(store: Any) -> None:
    """Assert that every operation raises KAFKA_STORAGE_ERROR and names the log directory."""
    attempts: tuple[Callable[[], object], ...] = (
        lambda: store.append("x"),
        lambda: store.log.reader.read(0, 100),
        lambda: store.log.reader.offset_for_timestamp(0),
        lambda: store.log.flusher.start_flush(),
        lambda: store.log.shortening.apply_retention(store.now),
        lambda: store.log.shortening.truncate_to(0, store.now),
        lambda: store.folder.create_log("u", 0, topic_id=None, config=store.config, now_ms=0),
        lambda: store.folder.delete_log("t", 0),
        lambda: store.folder.start_checkpoint()(),
        lambda: store.log.shortening.delete_records_before(0),
        lambda: store.log.reader.offset_of_max_timestamp(),
    )
    for attempt in attempts:
        with pytest.raises(KafkaError) as caught:
            attempt()
        assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        assert str(store.path) in str(caught.value)


@pytest.mark.parametrize("room", [0, 1, 16, 17, 61, 70])
def test_a_full_disk_takes_the_folder_offline(
    faulty: Any, disk: FaultyDisk, room: int, caplog: pytest.LogCaptureFixture
) -> None:
    disk.fill_up(room)
    with caplog.at_level(logging.ERROR), pytest.raises(KafkaError) as caught:
        faulty.append("lost" * 10)
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert "writing t-0: No space left on device" in str(caught.value)
    assert faulty.log.log_end_offset == 1
    assert len(faulty.offline) == 1 and faulty.folder.failure == faulty.offline[0]
    happened, remedy = [record.getMessage() for record in caplog.records if record.name.startswith("logd.")]
    assert "is offline" in happened and "make room" in remedy
    disk.room = None
    assert_offline(faulty)
    assert len(faulty.offline) == 1, "said once"

    faulty.close()
    assert not (faulty.path / ".kafka_cleanshutdown").exists()
    faulty.open()
    assert faulty.values() == ["safe"]
    assert faulty.append("again") == 1


@pytest.mark.parametrize("suffix", [".snapshot", ".log"])
def test_an_error_while_rolling(faulty: Any, disk: FaultyDisk, suffix: str) -> None:
    """Failures to open either file take the log directory offline. The producer snapshot of a roll is written
    by the next flush.
    """
    faulty.configure(segment_bytes=300, index_interval_bytes=0)
    faulty.append("x" * 100)
    if suffix == ".snapshot":
        faulty.configure(segment_bytes=200)
        roll(faulty.log, faulty.log.flusher, faulty.now)
    disk.failing, disk.suffix = {"open"}, suffix
    with pytest.raises(KafkaError):
        faulty.log.flusher.flush() if suffix == ".snapshot" else faulty.append("x" * 100)
    disk.failing = set()
    assert faulty.log.log_end_offset == 2
    assert_offline(faulty)
    faulty.reopen(clean=False)
    assert faulty.log.log_end_offset == 2


def test_a_failed_fsync_is_the_end_of_trust(faulty: Any, disk: FaultyDisk) -> None:
    """Failed fsyncs take the log directory offline: the kernel drops dirty pages that it cannot write, and
    the next fsync succeeds all the same.
    """
    flush = faulty.log.flusher.start_flush()
    disk.failing = {"sync"}
    with pytest.raises(KafkaError) as caught:
        flush.run()
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    disk.failing = set()
    assert faulty.log.recovery_point == 0
    assert_offline(faulty)


def test_a_failed_read_takes_the_folder_offline(faulty: Any, disk: FaultyDisk) -> None:
    faulty.reopen(clean=True)
    disk.failing = {"read"}
    with pytest.raises(KafkaError, match="reading t-0: Input/output error"):
        faulty.log.reader.read(0, 100)
    disk.failing = set()
    assert_offline(faulty)


def test_one_log_takes_its_neighbours_along(faulty: Any, disk: FaultyDisk) -> None:
    neighbour = faulty.folder.create_log("u", 0, topic_id=None, config=faulty.config, now_ms=0)
    disk.fill_up()
    with pytest.raises(KafkaError):
        faulty.append("x")
    with pytest.raises(KafkaError):
        neighbour.reader.read(0, 100)


def test_a_clean_stop_that_cannot_write_leaves_no_marker(faulty: Any, disk: FaultyDisk) -> None:
    disk.failing = {"sync"}
    faulty.close()
    disk.failing = set()
    assert not (faulty.path / ".kafka_cleanshutdown").exists()
    faulty.open()
    assert faulty.values() == ["safe"]


@pytest.mark.parametrize("operation", ["open", "write", "sync", "rename"])
def test_a_checkpoint_is_the_old_one_or_the_new_one(tmp_path: Any, disk: FaultyDisk, operation: str) -> None:
    path = tmp_path / "checkpoint"
    write_atomically(disk, path, b"old")
    disk.failing = {operation}
    with pytest.raises(OSError):
        write_atomically(disk, path, b"new and longer")
    assert path.read_bytes() == b"old"
    disk.failing = set()
    write_atomically(disk, path, b"new")
    assert path.read_bytes() == b"new"


def test_a_checkpoint_is_on_the_disk_before_it_has_its_name(tmp_path: Any, disk: FaultyDisk) -> None:
    write_atomically(disk, tmp_path / "checkpoint", b"content")
    steps = [step for step in disk.done if step[0] in ("write", "sync", "rename")]
    assert steps == [
        ("write", "checkpoint.tmp"),
        ("sync", "checkpoint.tmp"),
        ("rename", "checkpoint.tmp"),
        ("sync", tmp_path.name),
    ]


def test_a_deletion_that_fails_is_left_to_the_next_start(
    faulty: Any, disk: FaultyDisk, caplog: pytest.LogCaptureFixture
) -> None:
    faulty.configure(segment_bytes=250)
    for _ in range(3):
        faulty.append("x" * 100)
    deletions = faulty.log.shortening.delete_records_before(3)
    disk.failing, disk.error = {"unlink"}, errno.EROFS
    for deletion in deletions:
        deletion.run()
    assert "cannot delete" in caplog.text
    assert faulty.folder.failure is None


def test_more_buffers_than_one_call_takes(tmp_path: Any) -> None:
    file = PosixDisk().open(tmp_path / "file")
    buffers = [bytes([number % 251]) for number in range(3000)]
    file.write(5, buffers)
    assert file.read(5, 10_000) == b"".join(buffers)
    assert (file.size(), file.read(4000, 10)) == (3005, b"")
    file.close()
