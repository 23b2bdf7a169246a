"""Tests of truncating a log: records, epochs and files. Crashes are in `tests/faults`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.records import build_batch
from logd.storage.disk import read_slice
from logd.storage.names import TRUNCATION
from logd.storage.testing import FaultyDisk


@pytest.fixture
def six(store: Any) -> Any:
    """Six batches of two records in segments of two batches, each in an epoch of its own."""
    store.configure(segment_bytes=400)
    for number in range(6):
        store.log.writer.append(store_batch(store, number), number, store.now)
    return store


def store_batch(store: Any, number: int) -> bytes:
    return build_batch([(store.now, None, b"%050d" % number, ())] * 2)


def bases(store: Any) -> list[int]:
    return [segment.base_offset for segment in store.log.segments.row]


@pytest.mark.parametrize(
    ("offset", "end"), [(12, 12), (11, 10), (10, 10), (9, 8), (8, 8), (3, 2), (1, 0), (0, 0)]
)
def test_what_is_left(six: Any, offset: int, end: int) -> None:
    six.log.shortening.truncate_to(offset, six.now)
    log = six.log
    assert log.log_end_offset == log.recovery_point == log.flusher.synced_offset == end
    assert log.epochs.entries == [(epoch, 2 * epoch) for epoch in range(end // 2)]
    assert log.flusher.is_flushed and [int(value) for value in six.values()[::2]] == list(range(end // 2))
    six.folder.start_checkpoint()()
    six.reopen(clean=False)
    assert (six.log.log_end_offset, len(six.values())) == (end, end)
    assert not (six.log_path / TRUNCATION).exists()
    assert six.append("x") == end


def test_before_the_log_start(six: Any) -> None:
    """Truncation to before a log's start empties the log, which then begins at that offset."""
    for deletion in six.log.shortening.delete_records_before(9):
        deletion.run()
    assert bases(six) == [8]
    six.log.shortening.truncate_to(5, six.now)
    assert (six.log.log_start_offset, six.log.log_end_offset, bases(six)) == (5, 5, [5])
    assert six.append("x") == 5
    six.folder.start_checkpoint()()
    six.reopen(clean=True)
    assert six.values() == ["x"]


def test_within_the_first_segment_before_the_log_start(six: Any) -> None:
    six.log.shortening.delete_records_before(11)
    six.log.shortening.truncate_to(9, six.now)
    assert (six.log.log_start_offset, six.log.log_end_offset) == (8, 8)


@pytest.mark.parametrize("offset", [0, 7, 12, 5_000])
def test_beginning_afresh(six: Any, offset: int) -> None:
    six.log.writer.append(store_batch(six, 6), 6, six.now)
    for deletion in six.log.shortening.truncate_fully_and_start_at(offset, six.now):
        deletion.run()
    log = six.log
    assert (log.log_start_offset, log.log_end_offset, log.recovery_point) == (offset,) * 3
    assert not log.epochs.entries and not log.producers.producers and not log.snapshots.offsets
    assert log.epochs.highest == 6, "none that was given out comes again"
    assert {name for name in six.files() if name.endswith((".log", ".snapshot"))} == {f"{offset:020d}.log"}
    six.folder.start_checkpoint()()
    six.reopen(clean=False)
    assert six.append("x") == offset and six.values() == ["x"]


def test_the_log_is_lent(six: Any) -> None:
    six.log.flusher.flush()
    truncation = six.log.shortening.start_truncation(6, six.now)
    assert six.log.recovery_point == truncation.recovery_point <= 6
    for attempt in (
        lambda: six.append("x"),
        lambda: six.log.reader.read(0, 100),
        lambda: six.log.copier.append(b"", 0, six.now),
        lambda: six.log.flusher.start_flush(),
        lambda: six.log.shortening.truncate_to(0, six.now),
    ):
        with pytest.raises(KafkaError, match="t-0 is being truncated"):
            attempt()
    truncation.run()
    assert six.log.log_end_offset == 12
    truncation.finish()
    assert six.log.log_end_offset == 6 and six.append("x") == 6


def test_a_log_that_is_deleted_meanwhile(six: Any) -> None:
    six.log.flusher.flush()
    log = six.log
    truncation = log.shortening.start_truncation(6, six.now)
    deletion = six.folder.delete_log("t", 0)
    before = {path.name for path in deletion.paths[0].iterdir()}
    truncation.run()
    assert truncation.finish() == []
    assert {path.name for path in deletion.paths[0].iterdir()} == before
    with pytest.raises(KafkaError, match="was deleted"):
        log.reader.read(0, 1)


def test_slices_given_out_stay_readable(six: Any) -> None:
    piece = six.log.reader.read(0, 100)
    data = read_slice(piece)
    six.log.shortening.truncate_to(8, six.now)
    assert read_slice(piece) == data


def test_what_is_kept_is_damaged(six: Any) -> None:
    """Nothing has changed then: its leader has it all, and the log can begin afresh."""
    six.log.flusher.flush()
    path: Path = six.log_path / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[16] = 0  # the magic of the first batch
    path.write_bytes(data)
    with pytest.raises(KafkaError) as caught:
        six.log.shortening.truncate_to(3, six.now)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
    assert six.log.log_end_offset == 12 and not six.offline
    six.log.shortening.truncate_fully_and_start_at(0, six.now)
    assert six.append("x") == 0


@pytest.mark.parametrize("operation", ["rename", "truncate", "sync"])
def test_a_disk_that_fails(new_store: Any, operation: str) -> None:
    disk = new_store.disk = FaultyDisk()
    new_store.configure(segment_bytes=400)
    new_store.open()
    for number in range(6):
        new_store.append(f"{number:050d}", f"{number:050d}")
    new_store.log.flusher.flush()
    new_store.folder.start_checkpoint()()
    disk.failing = {operation}
    with pytest.raises(KafkaError) as caught:
        new_store.log.shortening.truncate_to(3, new_store.now)
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR and len(new_store.offline) == 1
    disk.failing = set()
    new_store.kill()
    log = new_store.open()
    assert 2 <= log.log_end_offset <= 12
    assert len(new_store.values()) == log.log_end_offset


def test_high_watermarks_of_the_checkpoint(store: Any) -> None:
    """High watermarks are kept by log directory. Those of a deleted log do not go to a
    new one of its name.
    """
    store.append("a", "b")
    tp = store.log.tp
    store.folder.start_checkpoint({tp: 1, ("other", 3): 9})()
    assert store.folder.high_watermarks == {tp: 1}
    store.folder.start_checkpoint()()
    store.reopen(clean=False)
    assert store.folder.high_watermarks == {tp: 1}
    earlier = store.folder.high_watermark_checkpoint({tp: 1})
    store.folder.high_watermark_checkpoint({tp: 2})()
    earlier()
    store.reopen(clean=False)
    assert store.folder.high_watermarks == {tp: 2}, "an older one does not overwrite it"
    full = store.folder.start_checkpoint({tp: 2})
    store.folder.high_watermark_checkpoint({tp: 1})()
    store.log.flusher.flush()
    full()
    assert (store.path / "recovery-point-offset-checkpoint").read_text().split()[-1] == "0", "it is written"
    store.folder.delete_log("t", 0)
    store.folder.create_log("t", 0, topic_id=bytes(16), config=store.config, now_ms=store.now)
    store.reopen(clean=False)
    assert store.folder.high_watermarks.get(tp, 0) == 0
