"""Tests of flushing: what is synced to the disk, what a start after a crash reads, and reads that never wait
for the disk.
"""

from __future__ import annotations

from typing import Any

import pytest

from kafka_client.errors import ErrorCode, KafkaError
from logd.storage import NotResident
from logd.storage.disk import CACHED_ONLY, read_slice
from logd.storage.testing import FaultyDisk
from tests.support.page_cache import forget

LARGE = 300_000
"""Four of these are more than a flush lets pass without a producer snapshot."""


@pytest.fixture
def disk() -> FaultyDisk:
    return FaultyDisk()


@pytest.fixture
def faulty(new_store: Any, disk: FaultyDisk) -> Any:
    new_store.disk = disk
    new_store.open()
    return new_store


def write(store: Any, first_sequence: int, count: int, size: int = LARGE) -> None:
    for sequence in range(first_sequence, first_sequence + count):
        store.append("x" * size, producer_id=7, producer_epoch=0, base_sequence=sequence)


def synced(disk: FaultyDisk) -> list[str]:
    return [name for operation, name in disk.done if operation == "sync"]


def test_a_sync_forces_the_records_alone(faulty: Any, disk: FaultyDisk) -> None:
    log = faulty.log
    faulty.append("a")
    log.flusher.flush()
    faulty.append("b")
    disk.done.clear()
    sync = log.flusher.start_sync()
    assert sync is not None
    faulty.append("c")
    sync.run()
    log.flusher.finish_flush(sync)
    assert synced(disk) == ["00000000000000000000.log"]
    assert (log.flusher.synced_offset, log.recovery_point, log.log_end_offset) == (2, 1, 3)
    assert not log.flusher.is_flushed
    faulty.reopen(clean=False)
    assert faulty.values() == ["a", "b", "c"]


def test_the_names_of_a_new_log_and_of_a_new_segment_are_forced_too(faulty: Any, disk: FaultyDisk) -> None:
    faulty.append("a")
    disk.done.clear()
    sync = faulty.log.flusher.start_sync()
    sync.run()
    faulty.log.flusher.finish_flush(sync)
    assert synced(disk) == ["00000000000000000000.log", "partition.metadata", "t-0", "data"]
    faulty.configure(segment_bytes=100)
    faulty.append("b" * 30)
    disk.done.clear()
    sync = faulty.log.flusher.start_sync()
    sync.run()
    assert synced(disk) == ["00000000000000000001.log", "t-0"]


def test_a_sync_that_overtakes_a_flush_forces_its_names_too(faulty: Any, disk: FaultyDisk) -> None:
    """Threads do not take turns in the order they came in."""
    log = faulty.log
    faulty.append("a")
    log.flusher.flush()
    faulty.configure(segment_bytes=100)
    faulty.append("b" * 30)
    faulty.configure(segment_bytes=1_000_000)
    flush = log.flusher.start_flush()
    faulty.append("c")
    sync = log.flusher.start_sync()
    disk.done.clear()
    sync.run()
    assert synced(disk) == ["00000000000000000001.log", "t-0"]
    log.flusher.finish_flush(sync)
    flush.run()
    log.flusher.finish_flush(flush)
    faulty.append("d")
    sync = log.flusher.start_sync()
    disk.done.clear()
    sync.run()
    assert synced(disk) == ["00000000000000000001.log"]
    log.flusher.finish_flush(sync)


def test_what_is_due_counts_from_the_sync_that_was_begun(store: Any) -> None:
    store.configure(flush_messages=2)
    log = store.log
    store.append("a")
    assert not log.flusher.needs_flush(store.now)
    store.append("b")
    assert log.flusher.needs_flush(store.now)
    sync = log.flusher.start_sync()
    assert not log.flusher.needs_flush(store.now)
    store.append("c")
    assert not log.flusher.needs_flush(store.now)
    sync.run()
    log.flusher.finish_flush(sync)
    store.append("d")
    assert log.flusher.needs_flush(store.now)
    log.flusher.flush()
    assert not log.flusher.needs_flush(store.now)
    assert log.flusher.start_sync() is None


def test_indexes_of_rolled_segments_are_written_by_the_next_flush(faulty: Any, disk: FaultyDisk) -> None:
    faulty.configure(segment_bytes=600, index_interval_bytes=0)
    disk.done.clear()
    for value in "abcdef":
        faulty.append(value * 100)
    assert not [name for operation, name in disk.done if operation == "write" and name.endswith("index")]
    faulty.log.flusher.flush()
    written = {name for operation, name in disk.done if operation == "write" and name.endswith(".index")}
    assert written and written <= set(synced(disk))
    faulty.reopen(clean=False)
    assert faulty.values() == [value * 100 for value in "abcdef"]


def test_an_index_that_cannot_be_written_takes_the_folder_offline(faulty: Any, disk: FaultyDisk) -> None:
    faulty.configure(index_interval_bytes=0)
    for value in "abc":
        faulty.append(value)
    disk.failing, disk.suffix = {"write"}, ".index"
    with pytest.raises(KafkaError) as caught:
        faulty.log.flusher.flush()
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert faulty.log.recovery_point == 0 and faulty.folder.failure is not None
    disk.failing = set()
    faulty.reopen(clean=False)
    assert faulty.values() == ["a", "b", "c"]


def test_a_flush_takes_a_producer_snapshot_when_much_was_written(store: Any) -> None:
    write(store, 0, 2)
    store.log.flusher.flush()
    assert not snapshots(store)
    write(store, 2, 2)
    store.log.flusher.flush()
    assert snapshots(store) == [4]
    write(store, 4, 4)
    store.log.flusher.flush()
    assert snapshots(store) == [8], "nobody needs the older one"
    store.configure(segment_bytes=3_000_000)
    write(store, 8, 8)
    store.log.flusher.flush()
    write(store, 16, 4)
    store.log.flusher.flush()
    write(store, 20, 6)
    store.log.flusher.flush()
    offsets, beginnings = set(snapshots(store)), set(bases(store))
    assert len(beginnings) > 2 and beginnings - {0} <= offsets
    assert offsets - beginnings <= {max(offsets)}


def snapshots(store: Any) -> list[int]:
    return sorted(int(name.split(".")[0]) for name in store.files() if name.endswith(".snapshot"))


def bases(store: Any) -> list[int]:
    return sorted(int(name.split(".")[0]) for name in store.files() if name.endswith(".log"))


def test_a_start_after_a_crash_reads_what_came_since_the_flush(faulty: Any, disk: FaultyDisk) -> None:
    """Starts after a crash read only what was written since the flush. They used to walk every header of a
    segment of 1 GB to find the producers again.
    """
    write(faulty, 0, 3_000, size=1_000)
    faulty.log.flusher.flush()
    faulty.folder.start_checkpoint()()
    write(faulty, 3_000, 10, size=1_000)
    disk.done.clear()
    faulty.reopen(clean=False)
    reads = [name for operation, name in disk.done if operation == "read" and name.endswith(".log")]
    assert len(reads) < 10
    assert faulty.log.log_end_offset == 3_010
    assert faulty.log.producers.producers[7].next_sequence == 3_010
    assert len(faulty.values()) == 3_010


def test_timestamps_that_do_not_grow_cost_a_recovery_nothing(faulty: Any, disk: FaultyDisk) -> None:
    """Equal timestamps cost a recovery no further reads. The largest timestamp was sought in all batches
    after its first occurrence.
    """
    for _ in range(3_000):
        faulty.append("x" * 1_000)
    faulty.log.flusher.flush()
    faulty.folder.start_checkpoint()()
    disk.done.clear()
    faulty.reopen(clean=False)
    reads = [name for operation, name in disk.done if operation == "read" and name.endswith(".log")]
    assert len(reads) < 10


def test_a_read_in_memory_or_not_at_all(store: Any) -> None:
    store.configure(index_interval_bytes=0, segment_bytes=400_000)
    for number in range(600):
        store.append(f"{number:1000}")
    store.log.flusher.flush()
    store.reopen(clean=True)
    jobs, piece = 0, None
    for _ in range(50):
        if not jobs and not all(forget(path) for path in store.log_path.iterdir()):
            pytest.skip("this file system keeps what it is told to forget")
        try:
            with CACHED_ONLY:
                piece = store.log.reader.read(100, 10_000)
        except NotResident as cold:
            jobs += 1
            cold.job()
        else:
            if jobs:  # else the start's reading ahead has only just come to an end
                break
    assert 0 < jobs < 8
    assert piece is not None and b"100" in read_slice(piece)
    with CACHED_ONLY:
        assert store.log.reader.read(100, 10_000) == piece


def test_reads_that_may_wait_are_left_alone(store: Any) -> None:
    store.append("a")
    store.reopen(clean=True)
    for path in store.log_path.iterdir():
        forget(path)
    assert store.values() == ["a"]
