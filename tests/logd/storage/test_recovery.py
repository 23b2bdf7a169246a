"""Tests of what remains of a log after an unclean stop, byte by byte."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from kafka_client.errors import ErrorCode, KafkaError
from logd.storage.disk import read_slice

LOG = "00000000000000000000.log"
INDEX = "00000000000000000000.index"
TIME_INDEX = "00000000000000000000.timeindex"


def test_a_kill_loses_nothing_the_kernel_has(store: Any) -> None:
    store.configure(segment_bytes=1000, index_interval_bytes=100)
    for number in range(25):
        store.append(f"{number:0100d}")
    store.reopen(clean=False)
    assert [int(value) for value in store.values()] == list(range(25))


def test_a_torn_tail_is_cut_at_every_byte(store: Any, tmp_path: Path) -> None:
    """Recovery cuts a torn batch at every byte: the power failed while the last batch was being written."""
    store.append("first", "second")
    whole = store.log.size
    store.append("torn", "away")
    end = store.log.size
    store.kill()
    data = (store.log_path / LOG).read_bytes()
    for size in range(whole, end + 1):
        (store.log_path / LOG).write_bytes(data[:size])
        store.open()
        expected = ["first", "second"] if size < end else ["first", "second", "torn", "away"]
        assert store.values() == expected
        assert store.log.log_end_offset == len(expected)
        assert (store.log_path / LOG).stat().st_size == (whole if size < end else end)
        assert store.append("next") == len(expected)
        store.kill()


@pytest.mark.parametrize("field", ["length", "magic", "crc", "attributes", "body", "base offset"])
def test_a_damaged_batch_ends_the_log(store: Any, field: str) -> None:
    positions = {"base offset": 7, "length": 11, "magic": 16, "crc": 17, "attributes": 22, "body": 66}
    for value in "abc":
        store.append(value)
    size = store.log.size // 3
    store.kill()
    with (store.log_path / LOG).open("r+b") as file:
        file.seek(size + positions[field])
        old = file.read(1)[0]
        file.seek(size + positions[field])
        # An offset that goes back, since one that leaps ahead is what compaction leaves behind.
        file.write(bytes([0 if field == "base offset" else old ^ 0x41]))
    store.open()
    assert store.values() == ["a"]
    assert (store.log_path / LOG).stat().st_size == size


def test_a_length_that_lies_is_not_believed(store: Any) -> None:
    store.append("a")
    store.kill()
    with (store.log_path / LOG).open("ab") as file:
        file.write(bytes(8) + b"\x7f\xff\xff\xff" + bytes(4) + b"\x02" + bytes(100))
    store.open()
    assert store.values() == ["a"]


def test_zeros_at_the_end_are_cut(store: Any) -> None:
    """Recovery cuts zeros at the end: the file system had noted the file's new length, but not its data, when
    the power failed.
    """
    store.append("a")
    size = store.log.size
    store.kill()
    with (store.log_path / LOG).open("ab") as file:
        file.truncate(size + 5000)
    store.open()
    assert (store.values(), store.log.size) == (["a"], size)


def test_segments_behind_a_damaged_one_go(store: Any) -> None:
    store.configure(segment_bytes=300)
    for number in range(6):
        store.append(f"{number:0100d}")
    store.kill()
    damaged = store.log_path / "00000000000000000002.log"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    store.open()
    assert [int(value) for value in store.values()] == [0, 1]
    assert store.append("next") == 2
    for deletion in store.folder.deletions:
        deletion.run()
    assert sorted(name for name in store.files() if ".log" in name) == [
        "00000000000000000000.log",
        "00000000000000000001.log",
        "00000000000000000002.log",
    ]


def test_what_is_behind_the_recovery_point_is_not_read_again(store: Any) -> None:
    """Recovery reads nothing below the recovery point. A byte flipped in a flushed segment is the disk's
    fault, and is found when it is read.
    """
    store.configure(segment_bytes=300)
    for number in range(4):
        store.append(f"{number:0100d}")
    store.log.flusher.flush()
    store.folder.start_checkpoint()()
    store.append("last")
    store.kill()
    first = store.log_path / LOG
    data = bytearray(first.read_bytes())
    data[-1] ^= 1
    first.write_bytes(data)
    store.open()
    assert store.log.log_end_offset == 5
    assert store.log.recovery_point == 4


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("name", [INDEX, TIME_INDEX, LOG.replace("00.log", "10.index")])
def test_a_lost_index_is_built_again(store: Any, clean: bool, name: str) -> None:
    store.configure(segment_bytes=2000, index_interval_bytes=100)
    for number in range(20):
        store.append(f"{number:0120d}", timestamps=[number])
    store.close() if clean else store.kill()
    indexes = {path.name: path.read_bytes() for path in store.log_path.glob("*index")}
    (store.log_path / name).unlink(missing_ok=True)
    store.open()
    assert [store.offsets_in(number, 1) for number in range(20)] == [[number] for number in range(20)]
    assert [store.log.reader.offset_for_timestamp(number)[1] for number in range(20)] == list(range(20))
    store.close()
    for path in store.log_path.glob("*index"):
        if indexes.get(path.name):
            assert path.read_bytes() == indexes[path.name]


@pytest.mark.parametrize("content", [b"\xff" * 16, b"\x00\x00\x00\x00\x00\x00\x00\x07", bytes(4096)])
def test_an_index_that_points_nowhere_is_built_again(store: Any, content: bytes) -> None:
    store.configure(index_interval_bytes=100)
    for number in range(10):
        store.append(f"{number:0120d}")
    store.close()
    (store.log_path / INDEX).write_bytes(content)
    store.open()
    assert store.log.log_end_offset == 10
    assert [store.offsets_in(number, 1) for number in range(10)] == [[number] for number in range(10)]


def test_unsaved_index_entries_come_back(store: Any) -> None:
    """Index entries wait in memory for a flush; a kill takes them, recovery builds the same ones again."""
    store.configure(index_interval_bytes=100)
    for number in range(10):
        store.append(f"{number:0120d}", timestamps=[number * 10])
    store.kill()
    assert not (store.log_path / INDEX).exists()
    store.reopen(clean=True)
    store.close()
    crashed = {name: (store.log_path / name).read_bytes() for name in (INDEX, TIME_INDEX)}
    shutil.rmtree(store.path)
    store.open()
    for number in range(10):
        store.append(f"{number:0120d}", timestamps=[number * 10])
    store.close()
    assert crashed == {name: (store.log_path / name).read_bytes() for name in (INDEX, TIME_INDEX)}


def test_a_clean_stop_needs_no_scan(store: Any) -> None:
    """Nothing but the last index entry's neighbourhood is read: damage elsewhere goes unseen."""
    store.configure(index_interval_bytes=100)
    for number in range(10):
        store.append(f"{number:0120d}")
    store.close()
    data = bytearray((store.log_path / LOG).read_bytes())
    data[100] ^= 1
    (store.log_path / LOG).write_bytes(data)
    store.open()
    assert store.log.log_end_offset == 10
    assert store.log.recovery_point == 10


def test_the_marker_holds_for_one_start(store: Any) -> None:
    store.append("a")
    store.close()
    assert (store.path / ".kafka_cleanshutdown").exists()
    store.open()
    assert not (store.path / ".kafka_cleanshutdown").exists()
    store.kill()
    assert not (store.path / ".kafka_cleanshutdown").exists()


def test_files_waiting_for_deletion_are_cleared_away(store: Any) -> None:
    store.configure(segment_bytes=300)
    for _ in range(3):
        store.append("x" * 100)
    for deletion in store.log.shortening.delete_records_before(2):
        deletion.hide()
    store.kill()
    store.open()
    for deletion in store.folder.deletions:
        deletion.run()
    assert not [name for name in store.files() if name.endswith(".deleted")]
    assert store.log.log_start_offset == 2


def test_epochs_newer_than_the_checkpoint_are_learned(store: Any, batch: Any) -> None:
    store.log.writer.append(batch("a"), 1, store.now)
    store.log.flusher.flush()
    store.log.writer.append(batch("b"), 5, store.now)
    store.kill()
    assert (store.log_path / "leader-epoch-checkpoint").read_text() == "0\n1\n1 0\n"
    store.open()
    assert store.log.end_offset_for_epoch(1) == (1, 1)
    assert store.log.end_offset_for_epoch(5) == (5, 2)
    assert store.log.latest_epoch == 6, "begun by the recovery itself"


@pytest.mark.parametrize("older", [1, 4])
def test_an_epoch_that_was_begun_in_vain_is_not_taken_for_that_of_the_batch(
    store: Any, batch: Any, older: int
) -> None:
    """Batches keep their own epoch if a later one was begun before it. A leader begins epoch 5 and writes
    that down. The next leader sends a batch that its predecessor appended in an older epoch. The machine dies
    when the batch is on the disk and the epochs are not.
    """
    store.log.writer.append(batch("a"), 1, store.now)
    store.log.begin_epoch(5)
    store.log.flusher.flush()
    checkpoint = (store.log_path / "leader-epoch-checkpoint").read_text()
    assert checkpoint == "0\n2\n1 0\n5 1\n"
    assert store.log.shortening.start_truncation(1, store.now) is None
    store.log.writer.append(batch("b"), older, store.now)
    store.log.flusher.sync()
    store.kill()
    assert (store.log_path / "leader-epoch-checkpoint").read_text() == checkpoint
    store.open()
    assert [store.log.epoch_of(offset) for offset in (0, 1)] == [1, older]
    assert store.log.end_offset_for_epoch(older) == (older, 2)


def test_a_stale_recovery_point_of_a_deleted_log_is_not_used(store: Any) -> None:
    """Recovery points of a deleted topic are not used for a new one of the same name: recovery reads all of
    the new log.
    """
    store.configure(segment_bytes=300)
    for _ in range(10):
        store.append("x" * 100)
    store.log.flusher.flush()
    store.folder.start_checkpoint()()
    store.folder.delete_log("t", 0).run()
    store.reopen(clean=False)
    for number in range(12):
        store.append(f"{number:0100d}")
    store.kill()
    damaged = store.log_path / "00000000000000000003.log"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    store.open()
    assert store.log.log_end_offset == 3


def test_a_recovered_tail_is_read_by_position(store: Any) -> None:
    for number in range(5):
        store.append(f"{number}")
    store.reopen(clean=False)
    piece = store.log.reader.read(4, 1000)
    assert piece is not None and piece.position + piece.length == store.log.size
    assert b"4" in read_slice(piece)


def test_a_log_with_old_damage_opens(store: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Logs with a damaged batch open, and the damage is logged. The snapshots are missing, so the headers are
    read to find the producers.
    """
    store.configure(segment_bytes=200)
    for _ in range(6):
        store.append("x")
    store.close()
    for path in store.log_path.glob("*.snapshot"):
        path.unlink()
    with (store.log_path / LOG).open("r+b") as file:
        file.seek(16)
        file.write(b"\x00")
    store.open()
    assert store.log.log_end_offset == 6
    assert "damaged batch: batch magic 0" in caplog.text


def test_damage_found_by_a_read_leaves_the_folder_online(store: Any) -> None:
    for value in "abc":
        store.append(value)
    size = store.log.size // 3
    store.reopen(clean=True)
    with (store.log_path / LOG).open("r+b") as file:
        file.seek(size + 8)
        file.write(bytes(4))  # the second batch's length
    with pytest.raises(KafkaError) as caught:
        store.log.reader.read(2, 100)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
    assert store.folder.failure is None
    assert store.append("d") == 3


def fill_flush_and_append(store: Any) -> None:
    """Append and flush ten records, checkpoint them, and append five more to the same segment."""
    store.configure(index_interval_bytes=250)
    for number in range(15):
        if number == 10:
            store.log.flusher.flush()
            store.folder.start_checkpoint()()
        store.append(f"{number:0100d}", timestamps=[number * 10])


def test_in_a_segment_recovery_reads_on_from_the_last_flush(
    store: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Recovery reads a segment from the last flush on: damage before the recovery point goes unseen."""
    caplog.set_level("INFO")
    fill_flush_and_append(store)
    size = store.log.size // 15
    store.kill()
    with (store.log_path / LOG).open("r+b") as file:
        file.seek(3 * size + 70)
        file.write(b"\xff")
    store.open()
    assert (store.log.recovery_point, store.log.log_end_offset) == (10, 15)
    assert f"t-0: recovered from offset 10 on, {5 * size} bytes checked" in caplog.text
    assert store.append("next") == 15


def test_the_index_of_a_recovered_segment_is_the_one_it_would_have_had(store: Any) -> None:
    fill_flush_and_append(store)
    store.close()
    undisturbed = {name: (store.log_path / name).read_bytes() for name in (INDEX, TIME_INDEX)}
    shutil.rmtree(store.path)
    store.open()
    fill_flush_and_append(store)
    store.reopen(clean=False)
    store.close()
    assert undisturbed == {name: (store.log_path / name).read_bytes() for name in (INDEX, TIME_INDEX)}


@pytest.mark.parametrize("tail", [bytes(48), b"\x7f" * 48, b"\xff" * 50, b"\x00\x00\x00\x03" * 12])
def test_what_a_crash_left_behind_the_flushed_index_is_not_believed(store: Any, tail: bytes) -> None:
    """Index entries after the flushed ones are not used: the power failed while they were being written, so
    the file is longer but holds no more entries.
    """
    fill_flush_and_append(store)
    store.kill()
    for name in (INDEX, TIME_INDEX):
        with (store.log_path / name).open("ab") as file:
            file.write(tail)
    store.open()
    assert [store.offsets_in(number, 1) for number in range(15)] == [[number] for number in range(15)]
    assert [store.log.reader.offset_for_timestamp(number * 10)[1] for number in range(15)] == list(range(15))


@pytest.mark.parametrize("content", [b"", b"\xff" * 16, b"\x00\x00\x00\x05\x00\x00\x00\x07", bytes(4096)])
def test_where_the_flushed_index_leads_nowhere_the_segment_is_read_whole(store: Any, content: bytes) -> None:
    fill_flush_and_append(store)
    store.kill()
    (store.log_path / INDEX).write_bytes(content)
    store.open()
    assert [int(value) for value in store.values()] == list(range(15))
    assert [store.offsets_in(number, 1) for number in range(15)] == [[number] for number in range(15)]


def test_a_segment_shorter_than_its_recovery_point_ends_where_it_ends(store: Any) -> None:
    fill_flush_and_append(store)
    size = store.log.size // 15
    store.kill()
    with (store.log_path / LOG).open("r+b") as file:
        file.truncate(7 * size + 20)
    store.open()
    assert [int(value) for value in store.values()] == list(range(7))
    assert store.append("next") == 7
