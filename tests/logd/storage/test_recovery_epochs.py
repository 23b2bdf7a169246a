"""An unclean start begins a new leader epoch, so that consumers notice what a power loss took (KIP-320).

The story: records 95 to 99 are acknowledged, read by a consumer, and lost with the machine's power. The
broker starts again and gives offsets 95 to 99 to other records, in the same leader epoch. The consumer goes
on at 100 and never knows that it has read what is not there, and has not read what is.
"""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from logd.storage import LogDirectory
from logd.storage.future_log import promote
from logd.storage.testing import FaultyDisk

PARTITIONS = 300
CHECKPOINT = "recovery-leader-epoch-checkpoint"


def lose(store: Any, batches: int) -> None:
    """Kill the broker and cut off the last batches, as a power loss does."""
    store.kill()
    path = store.log_path / f"{0:020d}.log"
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.truncate(size - batches * 100)


def fill(store: Any, count: int, *, text: str = "x") -> None:
    """Batches of 100 bytes."""
    for _ in range(count):
        before = store.log.size
        store.log.writer.append(store.batch(text * 32), max(store.log.latest_epoch, 0), store.now)
        assert store.log.size - before == 100


@pytest.fixture
def store(store: Any, batch: Any) -> Any:
    store.batch = batch
    return store


def test_offsets_are_not_used_again_in_the_same_epoch(store: Any) -> None:
    fill(store, 10)
    lose(store, 3)
    store.open()
    assert store.log.log_end_offset == 7
    assert store.log.latest_epoch == 1
    fill(store, 5, text="y")
    assert store.log.end_offset_for_epoch(0) == (0, 7), "who has read up to 10 sees that it was cut"
    assert store.log.end_offset_for_epoch(1) == (1, 12)
    assert [store.log.epoch_of(offset) for offset in (6, 7)] == [0, 1]


def test_a_clean_start_begins_none(store: Any) -> None:
    fill(store, 2)
    for _ in range(3):
        store.reopen(clean=True)
        assert store.log.latest_epoch == 0
    store.reopen(clean=False)
    for _ in range(3):
        store.reopen(clean=True)
        assert store.log.latest_epoch == 1, "begun at the end of the log, with no record in it"
    assert (store.log_path / "leader-epoch-checkpoint").read_text() == "0\n2\n0 0\n1 2\n"


def test_each_unclean_start_begins_one(store: Any) -> None:
    """Also where all that was written in the last one is lost, or nothing was."""
    fill(store, 10)
    for epoch in range(1, 4):
        lose(store, 1)
        store.open()
        assert store.log.latest_epoch == epoch
        if epoch == 2:
            fill(store, 1)
    assert store.log.end_offset_for_epoch(0) == (0, 8)
    assert store.log.end_offset_for_epoch(1) == store.log.end_offset_for_epoch(2) == (0, 8)
    assert store.log.end_offset_for_epoch(3) == (3, 8)


def test_a_log_that_never_held_a_record_begins_one(store: Any) -> None:
    """Its records may all be lost, with every trace."""
    store.reopen(clean=False)
    assert (store.log.latest_epoch, store.log.end_offset_for_epoch(0)) == (1, (0, 0))


def test_a_new_log_begins_at_epoch_0(store: Any) -> None:
    store.reopen(clean=False)
    log = store.folder.create_log("new", 0, topic_id=bytes(16), config=store.config, now_ms=store.now)
    assert log.latest_epoch == -1
    store.reopen(clean=True)
    assert store.folder.logs["new", 0].latest_epoch == -1
    store.reopen(clean=False)
    assert {log.latest_epoch for log in store.folder.logs.values()} == {2}


def test_a_crash_in_the_middle_of_recovery_announces_nothing(store: Any) -> None:
    """Logs begin an epoch only after the epoch's number is on the disk, whatever operation the machine dies
    at.
    """
    fill(store, 4)
    store.kill()
    disk = store.disk = FaultyDisk()
    for failing in ("open", "write", "sync", "rename"):
        disk.failing, disk.suffix = {failing}, f"{CHECKPOINT}.tmp"
        if failing == "sync":
            disk.suffix = ""
        with pytest.raises(Exception, match=r"cannot be opened|offline"):
            store.open()
        store.kill()
    disk.failing = set()
    store.open()
    assert (store.path / CHECKPOINT).read_text() == f"0\n1\n{store.log.latest_epoch}\n"
    done = [name for operation, name in disk.done if operation == "sync"]
    assert done[-2:] == [f"{CHECKPOINT}.tmp", store.path.name], "the number, then its name"


def test_epochs_of_apache_kafka_go_on(store: Any) -> None:
    """Epochs go on from the largest that Apache Kafka wrote. The controller had reached epoch 40, and one of
    the logs is idle.
    """
    idle = store.folder.create_log("idle", 0, topic_id=bytes(16), config=store.config, now_ms=store.now)
    store.log.writer.append(store.batch("a"), 7, store.now)
    idle.writer.append(store.batch("b"), 3, store.now)
    store.close()
    (store.path / "idle-0" / "leader-epoch-checkpoint").write_text("0\n2\n3 0\n40 1\n")
    store.open()
    assert (store.log.latest_epoch, store.folder.logs["idle", 0].latest_epoch) == (7, 40)
    store.reopen(clean=False)
    log, idle = store.log, store.folder.logs["idle", 0]
    assert log.latest_epoch > 7 and idle.latest_epoch > 40
    assert log.end_offset_for_epoch(7) == (7, 1)
    assert idle.end_offset_for_epoch(40) == (3, 1)


@pytest.mark.parametrize("what", ["records", "all records", "the newest segment"])
def test_a_log_that_lost_records_without_a_crash_begins_one(store: Any, what: str) -> None:
    """Logs that lost records without a crash begin an epoch too, for example when an older copy was put in
    place or the file system was repaired.
    """
    store.configure(segment_bytes=500)
    fill(store, 10)
    store.close()
    (last,) = store.log_path.glob(f"{5:020d}.log")
    if what == "the newest segment":
        for path in store.log_path.glob(f"{5:020d}.*"):
            path.unlink()
    else:
        with last.open("r+b") as file:
            file.truncate(200 if what == "records" else 0)
    store.open()
    assert store.log.latest_epoch == 1
    assert store.log.end_offset_for_epoch(0) == (0, store.log.log_end_offset)


def test_the_epoch_is_found_again_after_a_flush(store: Any) -> None:
    store.reopen(clean=False)
    fill(store, 2)
    store.log.flusher.flush()
    assert (store.log_path / "leader-epoch-checkpoint").read_text() == "0\n1\n1 0\n"
    (store.path / CHECKPOINT).unlink()
    store.reopen(clean=False)
    assert store.log.latest_epoch == 2


def test_a_log_that_had_moved_begins_one(store: Any, tmp_path: Path) -> None:
    """Logs that a crash left between the two renames of their move begin a new epoch when they are put in
    place. The copy has the epochs of the original.
    """
    store.log.writer.append(store.batch("a"), 6, store.now)
    store.log.flusher.flush()
    store.kill()
    path = store.path / f"t-0.{'0' * 32}-future"
    shutil.move(store.log_path, path)
    folder = LogDirectory.open(
        store.path, node_id=1, cluster_id="cluster", config_for=lambda topic: store.config, now_ms=store.now
    )
    try:
        log = promote(folder, "t", 0, path, store.config, store.now)
        assert log.latest_epoch == 7
        assert (store.path / CHECKPOINT).read_text() == "0\n1\n7\n"
    finally:
        for log in folder.logs.values():
            log.release()
        folder._lock.release()


def test_one_file_is_forced_to_the_disk_however_many_logs_there_are(store: Any) -> None:
    """Opening many logs after a crash must not cost an fsync each; nor does the background flush after it."""
    for number in range(PARTITIONS):
        store.folder.create_log("many", number, topic_id=bytes(16), config=store.config, now_ms=store.now)
    store.reopen(clean=True)
    store.kill()
    disk = store.disk = FaultyDisk()
    store.open()
    counts = Counter(operation for operation, _ in disk.done)
    assert counts["sync"] <= 2, "the number and its name"
    assert counts["write"] <= 1
    assert {log.latest_epoch for log in store.folder.logs.values()} == {1}
    assert all(log.flusher.is_flushed for log in store.folder.logs.values()), (
        "nothing to do in the background"
    )


def test_logs_that_are_made_again_share_one_number(store: Any) -> None:
    """Logs that are created again all begin the same new epoch, with no further sync. A power loss may remove
    all folders of a topic, and a broker that knows the topic creates its logs again.
    """
    store.reopen(clean=False)
    announced = store.log.latest_epoch
    store.kill()
    disk = store.disk = FaultyDisk()
    store.open()
    assert store.folder.announced_epoch == announced
    disk.done.clear()
    for number in range(PARTITIONS):
        log = store.folder.create_log(
            "lost", number, topic_id=bytes(16), config=store.config, now_ms=store.now
        )
        store.folder.begin_epoch([log], above=store.folder.announced_epoch)
        assert log.latest_epoch == announced + 1
    assert not [name for operation, name in disk.done if operation == "sync"]
