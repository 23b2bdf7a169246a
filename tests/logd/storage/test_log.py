"""Tests of one log: appending, reading, rolling, timestamps, epochs, shortening."""

from __future__ import annotations

import os
from typing import Any

import pytest

from kafka_client.errors import ErrorCode, KafkaError, OffsetOutOfRange
from kafka_client.records import Codec, check_crc, decode_records, read_header
from logd.storage.disk import read_slice


def test_an_append_gets_the_next_offsets_and_the_epoch(store: Any, batch: Any) -> None:
    first = store.log.writer.append(batch("a", "b", "c"), 4, store.now)
    second = store.log.writer.append(batch("d"), 4, store.now)

    assert (first.base_offset, first.last_offset, first.log_append_time) == (0, 2, -1)
    assert (second.base_offset, second.last_offset, second.log_start_offset) == (3, 3, 0)
    assert store.log.log_end_offset == 4
    assert store.values() == ["a", "b", "c", "d"]
    piece = store.log.reader.read(3, 1000)
    assert piece is not None
    data = read_slice(piece)
    header = read_header(data)
    assert (header.base_offset, header.partition_leader_epoch) == (3, 4)
    check_crc(data, 0, header)


def test_the_callers_bytes_are_not_changed(store: Any, batch: Any) -> None:
    data = bytearray(batch("a"))
    before = bytes(data)
    store.append("before")
    store.log.writer.append(memoryview(data), 7, store.now)
    store.configure(message_timestamp_type="LogAppendTime")
    store.log.writer.append(data, 7, store.now)
    assert data == before


def test_several_batches_in_one_append(store: Any, batch: Any) -> None:
    appended = store.log.writer.append(batch("a", "b") + batch("c") + batch("d", "e"), 0, store.now)
    assert (appended.base_offset, appended.last_offset) == (0, 4)
    assert store.offsets_in(0, 10_000) == [0, 2, 3]


def test_several_batches_with_a_producer_are_refused(store: Any, batch: Any) -> None:
    with pytest.raises(KafkaError, match="come alone"):
        store.log.writer.append(
            batch("a") + batch("b", producer_id=1, producer_epoch=0, base_sequence=0), 0, 0
        )
    assert store.log.log_end_offset == 0


def test_reads_return_whole_batches(store: Any) -> None:
    for value in "abcdef":
        store.append(value * 100)
    size = store.log.size // 6

    assert store.offsets_in(0, 10**6) == [0, 1, 2, 3, 4, 5]
    assert store.offsets_in(2, 3 * size) == [2, 3, 4]
    assert store.offsets_in(2, 3 * size - 1) == [2, 3]
    assert store.offsets_in(2, 1) == [2], "the first batch comes whole, whatever max_bytes says"
    assert store.offsets_in(2, 1, min_one_batch=False) == []
    assert store.offsets_in(6, 1000) == []


def test_an_offset_inside_a_batch_returns_the_batch(store: Any) -> None:
    store.append("a", "b", "c")
    store.append("d", "e", "f")
    assert store.offsets_in(1, 1000) == [0, 3]
    assert store.offsets_in(5, 1000) == [3]


def test_nothing_from_the_upper_bound_on_is_read(store: Any) -> None:
    for value in "abcd":
        store.append(value)
    assert store.offsets_in(0, 10_000, upper_bound=2) == [0, 1]
    assert store.offsets_in(2, 10_000, upper_bound=2) == []
    assert store.offsets_in(3, 10_000, upper_bound=2) == []
    assert store.offsets_in(0, 10_000, upper_bound=99) == [0, 1, 2, 3]


def test_offsets_outside_the_log_are_refused(store: Any) -> None:
    store.append("a", "b")
    for offset in (-1, 3):
        with pytest.raises(OffsetOutOfRange) as caught:
            store.log.reader.read(offset, 100)
        assert (caught.value.offset, caught.value.start, caught.value.end) == (offset, 0, 2)
    assert store.log.reader.read(2, 100) is None


def test_old_batches_are_found_through_the_index(store: Any) -> None:
    """More batches than the tail remembers, in one segment with a sparse index, read from every offset."""
    store.configure(index_interval_bytes=500)
    for number in range(700):
        store.append(f"{number:050d}")
    assert (store.log_path / "00000000000000000000.log").stat().st_size == store.log.size
    for offset in range(700):
        assert store.offsets_in(offset, 1)[0] == offset
    assert [int(value) for value in store.values()] == list(range(700))


def test_a_full_segment_is_rolled(store: Any) -> None:
    store.configure(segment_bytes=1000)
    for number in range(30):
        store.append(f"{number:0100d}")
    logs = sorted(name for name in store.files() if name.endswith(".log"))
    assert len(logs) == 6 and logs[1] == "00000000000000000005.log"
    assert [int(value) for value in store.values()] == list(range(30))
    assert store.offsets_in(4, 10**6) == [4], "a slice ends with its segment"
    store.log.flusher.flush()
    assert "00000000000000000005.snapshot" in store.files()


def test_a_batch_larger_than_a_segment_is_refused(store: Any) -> None:
    store.configure(segment_bytes=1000)
    with pytest.raises(KafkaError) as caught:
        store.append("x" * 2000)
    assert caught.value.code is ErrorCode.RECORD_LIST_TOO_LARGE
    assert store.log.log_end_offset == 0


def test_a_segment_is_rolled_when_its_records_span_segment_ms(store: Any) -> None:
    store.configure(segment_ms=1000)
    for time in (5000, 5500, 6000, 6001, 6500):
        store.append("a", timestamps=[time])
    assert sorted(name for name in store.files() if name.endswith(".log")) == [
        "00000000000000000000.log",
        "00000000000000000003.log",
    ]


def test_without_timestamps_the_clock_rolls_a_segment(store: Any) -> None:
    store.configure(segment_ms=1000)
    store.append("a", timestamps=[-1])
    store.now += 1001
    store.append("b", timestamps=[-1])
    assert "00000000000000000001.log" in store.files()


def test_a_full_index_rolls_the_segment(store: Any) -> None:
    store.configure(index_interval_bytes=0, segment_index_bytes=48)
    for number in range(10):
        store.append("a", timestamps=[1000 + number])
    assert sorted(name for name in store.files() if name.endswith(".log"))[1] == "00000000000000000004.log"
    store.kill()
    assert all(path.stat().st_size <= 48 for path in store.log_path.glob("*.timeindex"))


def test_log_append_time_overwrites_the_timestamps(store: Any, batch: Any) -> None:
    store.configure(message_timestamp_type="LogAppendTime")
    appended = store.log.writer.append(batch("a", "b", timestamps=[1, 2], codec=Codec.GZIP), 0, 77_000)
    assert appended.log_append_time == 77_000
    piece = store.log.reader.read(0, 1000)
    assert piece is not None
    data = read_slice(piece)
    header = read_header(data)
    check_crc(data, 0, header)
    assert (header.timestamp_type, header.max_timestamp, header.codec) == (1, 77_000, Codec.GZIP)
    assert [record[1] for record in decode_records(data)] == [77_000, 77_000]
    assert store.log.reader.offset_for_timestamp(77_000) == (77_000, 0, 0)


@pytest.mark.parametrize("clean", [True, False])
def test_records_are_found_by_timestamp(store: Any, clean: bool) -> None:
    store.configure(segment_bytes=2000, index_interval_bytes=200)
    for number in range(40):
        times = [number * 100, number * 100 + 50, number * 100 + 20]
        store.append(*("x" * 40 for _ in times), timestamps=times)
    store.reopen(clean=clean)

    for number in range(40):
        assert store.log.reader.offset_for_timestamp(number * 100)[:2] == (number * 100, number * 3)
        assert store.log.reader.offset_for_timestamp(number * 100 + 21)[:2] == (
            number * 100 + 50,
            number * 3 + 1,
        )
    assert store.log.reader.offset_for_timestamp(3951) is None
    assert store.log.reader.offset_of_max_timestamp()[:2] == (3950, 118)


def test_timestamps_out_of_order(store: Any) -> None:
    store.configure(segment_bytes=300)
    for time in (500, 900, 100, 300, 1000, 200):
        store.append("x" * 100, timestamps=[time])
    assert store.log.reader.offset_for_timestamp(0)[:2] == (500, 0)
    assert store.log.reader.offset_for_timestamp(501)[:2] == (900, 1)
    assert store.log.reader.offset_for_timestamp(950)[:2] == (1000, 4)
    assert store.log.reader.offset_of_max_timestamp()[:2] == (1000, 4)
    assert store.log.reader.offset_for_timestamp(1001) is None


def test_an_empty_log_has_no_timestamps(store: Any) -> None:
    assert store.log.reader.offset_for_timestamp(0) is None
    assert store.log.reader.offset_of_max_timestamp() is None


def test_epochs_end_where_the_next_begins(store: Any, batch: Any) -> None:
    for epoch, count in ((1, 3), (1, 2), (4, 1), (6, 4)):
        store.log.writer.append(batch(*"x" * count), epoch, store.now)
    assert store.log.latest_epoch == 6
    assert [store.log.end_offset_for_epoch(epoch) for epoch in (0, 1, 2, 4, 5, 6, 7, -1)] == [
        (0, 0),
        (1, 5),
        (1, 5),
        (4, 6),
        (4, 6),
        (6, 10),
        (-1, -1),
        (-1, -1),
    ]
    assert [store.log.epoch_of(offset) for offset in (0, 4, 5, 6, 9)] == [1, 1, 4, 6, 6]


@pytest.mark.parametrize("clean", [True, False])
def test_epochs_survive_a_restart(store: Any, batch: Any, clean: bool) -> None:
    for epoch in (0, 2):
        store.log.writer.append(batch("x"), epoch, store.now)
    store.reopen(clean=clean)
    assert store.log.latest_epoch == (2 if clean else 3)
    assert [store.log.epoch_of(offset) for offset in (0, 1)] == [0, 2]
    assert store.log.end_offset_for_epoch(0) == (0, 1)


def test_delete_records_moves_the_log_start(store: Any) -> None:
    store.configure(segment_bytes=300, file_delete_delay_ms=1234)
    for number in range(6):
        store.append(f"{number:0100d}")
    (deletion,) = store.log.shortening.delete_records_before(3)
    assert store.log.log_start_offset == 3
    assert [int(value) for value in store.values()] == [3, 4, 5]
    with pytest.raises(OffsetOutOfRange):
        store.log.reader.read(2, 100)
    with pytest.raises(OffsetOutOfRange):
        store.log.shortening.delete_records_before(7)
    assert store.log.shortening.delete_records_before(1) == []

    assert deletion.delay_ms == 1234
    deletion.hide()
    assert "00000000000000000000.log.deleted" in store.files()
    deletion.run()
    assert not [name for name in store.files() if name.endswith(".deleted")]


@pytest.mark.parametrize("clean", [True, False])
def test_the_log_start_survives_a_restart_once_checkpointed(store: Any, clean: bool) -> None:
    store.append("a", "b", "c")
    store.log.shortening.delete_records_before(2)
    store.folder.start_checkpoint()()
    store.reopen(clean=clean)
    assert (store.log.log_start_offset, store.log.log_end_offset) == (2, 3)


def test_deleting_every_record_leaves_an_empty_log(store: Any) -> None:
    store.append("a", "b")
    store.log.shortening.delete_records_before(2)
    assert store.log.reader.read(2, 100) is None
    store.reopen(clean=True)
    assert (store.log.log_start_offset, store.append("c")) == (2, 2)
    assert store.values() == ["c"]


def test_truncation_cuts_at_the_batch(store: Any) -> None:
    store.configure(segment_bytes=400)
    for number in range(6):
        store.append(f"{number:050d}", f"{number:050d}")
    store.log.shortening.truncate_to(7, store.now)
    assert store.log.log_end_offset == 6, "offset 7 is inside the batch of 6 and 7"
    assert store.append("x") == 6
    assert [int(value) for value in store.values()[:-1]] == [0, 0, 1, 1, 2, 2]
    store.reopen(clean=True)
    assert store.log.log_end_offset == 7


def test_truncation_to_nothing(store: Any) -> None:
    store.configure(segment_bytes=300)
    for _ in range(4):
        store.append("x" * 100)
    store.log.shortening.truncate_to(0, store.now)
    assert (store.log.log_start_offset, store.log.log_end_offset, store.log.size) == (0, 0, 0)
    assert store.append("y") == 0


def test_truncation_forgets_timestamps_epochs_and_producers(store: Any, batch: Any) -> None:
    facts = {"producer_id": 9, "producer_epoch": 0}
    store.log.writer.append(batch("a", timestamps=[100], base_sequence=0, **facts), 0, store.now)
    store.log.writer.append(batch("b", timestamps=[200], base_sequence=1, **facts), 3, store.now)
    store.log.shortening.truncate_to(1, store.now)
    assert store.log.latest_epoch == 0
    assert store.log.reader.offset_of_max_timestamp()[:2] == (100, 0)
    again = store.log.writer.append(batch("b", base_sequence=1, **facts), 1, store.now)
    assert not again.duplicate and again.base_offset == 1


def test_a_slice_outlives_its_segment(store: Any) -> None:
    """Slices can be read after retention deletes their segment. A slow consumer is still sent from the
    segment when the number of its file descriptor could go to another file.
    """
    store.configure(segment_bytes=300)
    store.append("kept" * 20)
    store.append("x" * 100)
    piece = store.log.reader.read(0, 1000)
    for deletion in store.log.shortening.delete_records_before(1):
        deletion.run()
    for _ in range(5):
        store.append("x" * 100)
    assert decode_records(read_slice(piece))[0][3] == b"kept" * 20
    number = piece.fd
    del piece
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(number)


def test_a_slice_outlives_the_folder(store: Any) -> None:
    store.append("kept")
    piece = store.log.reader.read(0, 1000)
    store.close()
    assert decode_records(read_slice(piece))[0][3] == b"kept"


@pytest.mark.parametrize("clean", [True, False])
def test_appending_goes_on_after_a_restart(store: Any, clean: bool) -> None:
    store.configure(segment_bytes=1000, index_interval_bytes=100)
    for number in range(10):
        store.append(f"{number:0100d}")
    store.reopen(clean=clean)
    for number in range(10, 20):
        assert store.append(f"{number:0100d}") == number
    assert [int(value) for value in store.values()] == list(range(20))


def test_needs_flush(store: Any) -> None:
    store.configure(flush_messages=3)
    store.append("a", "b")
    assert not store.log.flusher.needs_flush(store.now)
    store.append("c")
    assert store.log.flusher.needs_flush(store.now)
    store.log.flusher.flush()
    assert store.log.recovery_point == 3 and not store.log.flusher.needs_flush(store.now)

    store.configure(flush_messages=2**63 - 1, flush_ms=1000)
    store.append("d")
    assert not store.log.flusher.needs_flush(store.now + 999)
    assert store.log.flusher.needs_flush(store.now + 1000)
    store.log.flusher.flush()
    assert not store.log.flusher.needs_flush(store.now + 5000)


def test_a_flush_covers_what_was_there_when_it_began(store: Any) -> None:
    store.append("a")
    flush = store.log.flusher.start_flush()
    store.append("b")
    flush.run()
    store.log.flusher.finish_flush(flush)
    assert store.log.recovery_point == 1
    assert store.log.flusher.start_flush() is not None


def test_a_flush_survives_the_deletion_of_what_it_flushes(store: Any) -> None:
    store.configure(segment_bytes=300)
    for _ in range(4):
        store.append("x" * 100)
    flush = store.log.flusher.start_flush()
    for deletion in store.log.shortening.delete_records_before(3):
        deletion.run()
    flush.run()
    store.log.flusher.finish_flush(flush)

    store.append("y")
    flush = store.log.flusher.start_flush()
    log = store.log
    store.folder.delete_log("t", 0).run()
    flush.run()
    log.flusher.finish_flush(flush)
    assert store.folder.failure is None and not store.log_path.exists()
