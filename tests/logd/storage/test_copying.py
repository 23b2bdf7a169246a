"""Tests of what a follower writes of a leader's fetched batches (bytes, offsets, segments), and of what it
refuses.
"""

from __future__ import annotations

import random
import tracemalloc
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kafka_client.errors import CorruptRecordBatch, ErrorCode, KafkaError
from kafka_client.records import Codec, build_batch, build_end_marker, iter_batches
from kafka_client.records.header import HEADER_SIZE, compute_crc
from kafka_client.records.run import check_run
from logd.storage.disk import read_slice
from logd.storage.log.copier import CopiedRun
from logd.storage.testing import FaultyDisk

EPOCH = 3


def run_of(*values: str, base: int = 0, step: int = 1, epoch: int = EPOCH, **facts: Any) -> bytes:
    """Batches of one record each, `step` offsets from one to the next."""
    return b"".join(
        build_batch(
            [(1_700_000_000_000 + index, b"k", value.encode(), ())],
            base_offset=base + index * step,
            leader_epoch=epoch,
            **facts,
        )
        for index, value in enumerate(values)
    )


def content(store: Any) -> bytes:
    return b"".join(bytes(chunk) for chunk in store.log.reader.batches(store.log.log_start_offset))


def state(store: Any) -> tuple[Any, ...]:
    """Return all state of the log that a refused run must leave unchanged."""
    log = store.log
    return (
        log.log_end_offset,
        log.epochs.entries,
        log.producers.rows(),
        log.first_unstable_offset,
        [(segment.base_offset, segment.size, len(segment.index)) for segment in log.segments.row],
        log.flusher.unflushed_since_ms,
        content(store),
    )


def refused(store: Any, run: bytes, *, epoch: int = EPOCH) -> str:
    before = state(store)
    with pytest.raises(KafkaError) as caught:
        store.log.copier.append(run, epoch, store.now)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
    assert state(store) == before
    return str(caught.value)


def test_a_run_is_written_as_it_came(store: Any) -> None:
    run = run_of("a", "b", "c", codec=Codec.GZIP)
    copied = store.log.copier.append(memoryview(run), EPOCH, store.now)
    assert copied == (0, 3, 3, len(run))
    assert content(store) == run
    assert store.log.epochs.entries == [(EPOCH, 0)]
    assert store.log.reader.offset_of_max_timestamp()[:2] == (1_700_000_000_002, 2)
    store.reopen(clean=True)
    assert content(store) == run and store.log.log_end_offset == 3


def test_gaps_are_taken_and_epochs_noted(store: Any) -> None:
    run = run_of("a", "b", base=10, step=7) + run_of("c", base=40, epoch=EPOCH + 2)
    assert store.log.copier.append(run, EPOCH + 2, store.now)[:3] == (10, 41, 3)
    assert store.log.epochs.entries == [(EPOCH, 10), (EPOCH + 2, 40)]
    assert store.offsets_in(0, 1 << 20) == [10, 17, 40]
    assert store.offsets_in(18, 1 << 20) == [40]


def test_a_part_of_a_batch_at_the_end_is_left_out(store: Any) -> None:
    run = run_of("a", "b", "c")
    third = len(run) // 3
    for length in range(2 * third, 3 * third, 7):
        assert store.log.copier.append(run[:length], EPOCH, store.now).batches in (0, 2)
        store.log.shortening.truncate_to(0, store.now)
    assert store.log.copier.append(run[: third - 1], EPOCH, store.now) == (0, 0, 0, 0)
    assert store.log.copier.append(b"", EPOCH, store.now) == (0, 0, 0, 0)


def test_one_write_for_each_segment(new_store: Any) -> None:
    new_store.disk = FaultyDisk()
    new_store.configure(segment_bytes=1_000, index_interval_bytes=100)
    new_store.open()
    new_store.disk.done.clear()
    run = run_of(*("x" * 60 for _ in range(40)))
    new_store.log.copier.append(run, EPOCH, new_store.now)
    writes = [name for operation, name in new_store.disk.done if operation == "write"]
    logs = [segment.file_name.split("/")[1] for segment in new_store.log.segments.row]
    assert writes == logs and len(logs) > 4
    assert all(segment.size <= 1_000 for segment in new_store.log.segments.row)
    assert content(new_store) == run
    for segment in new_store.log.segments.row[:-1]:
        batches = len(new_store.offsets_in(segment.base_offset, segment.size))
        assert len(segment.index) == batches - 1, "an entry whenever more than the interval has come"
    new_store.reopen(clean=False)
    assert content(new_store) == run
    for offset in range(40):
        assert new_store.offsets_in(offset, 1) == [offset]


def test_segments_end_by_time_within_a_run(store: Any) -> None:
    store.configure(segment_ms=100)
    run = b"".join(
        build_batch([(store.now + at, None, b"v", ())], base_offset=place, leader_epoch=EPOCH)
        for place, at in enumerate((0, 50, 101, 130, 202))
    )
    store.log.copier.append(run, EPOCH, store.now)
    assert [segment.base_offset for segment in store.log.segments.row] == [0, 2, 4]


def test_indexes_that_are_full_end_a_segment(store: Any) -> None:
    store.configure(segment_index_bytes=48, index_interval_bytes=0)
    store.log.copier.append(run_of(*"abcdefghijkl"), EPOCH, store.now)
    row = store.log.segments.row
    assert len(row) > 2 and all(len(segment.time_index) * 12 <= 48 for segment in row)
    assert store.values() == list("abcdefghijkl")


def test_a_batch_above_segment_bytes_is_taken_as_the_leader_took_it(store: Any) -> None:
    store.configure(segment_bytes=500)
    run = run_of("a") + run_of("x" * 2_000, base=1) + run_of("b", base=2)
    store.log.copier.append(run, EPOCH, store.now)
    assert [segment.base_offset for segment in store.log.segments.row] == [0, 1, 2]
    assert content(store) == run


def test_a_gap_wider_than_a_segment(store: Any) -> None:
    run = run_of("a") + run_of("b", "c", base=3 << 32)
    store.log.copier.append(run, EPOCH, store.now)
    store.log.flusher.flush()
    store.folder.start_checkpoint()()
    for clean in (False, True):
        store.reopen(clean=clean)
        assert content(store) == run and store.offsets_in(5, 1) == [3 << 32]


def test_the_first_batch_of_an_empty_log_may_begin_before_it(store: Any) -> None:
    """New followers may begin in the middle of a batch, where DeleteRecords has moved the leader's start."""
    store.log.shortening.truncate_fully_and_start_at(5, store.now)
    run = build_batch([(1_700_000_000_000, None, b"v", ())] * 4, base_offset=3, leader_epoch=EPOCH)
    run += run_of("b", base=7)
    assert store.log.copier.append(run, EPOCH, store.now)[:2] == (3, 8)
    assert (store.log.log_start_offset, store.log.log_end_offset) == (5, 8)
    assert store.log.epochs.entries == [(EPOCH, 5)]
    store.log.flusher.flush()
    store.folder.start_checkpoint()()
    for clean in (False, True):
        store.reopen(clean=clean)
        assert content(store) == run and store.log.log_start_offset == 5
        assert len([name for name in store.files() if name.endswith(".log")]) == 1
    assert "where 8 was due" in refused(store, build_batch([(1, None, b"v", ())] * 4, base_offset=6))


def test_what_does_not_go_on_from_the_log_is_refused(store: Any) -> None:
    store.log.copier.append(run_of("a", "b"), EPOCH, store.now)
    assert "where 2 was due" in refused(store, run_of("c", base=1))
    assert "where 3 was due" in refused(store, run_of("c", base=2) * 2)
    assert "leader epoch 2" in refused(store, run_of("c", base=2, epoch=2))
    assert "leader epoch 4" in refused(store, run_of("c", base=2) + run_of("d", base=3, epoch=4))
    assert "leader epoch 3" in refused(store, run_of("c", base=2, epoch=4) + run_of("d", base=3), epoch=4)
    assert "where 2 was due" in refused(store, run_of("c", base=2**63 - 1))
    store.log.begin_epoch(7)
    assert "leader epoch 3" in refused(store, run_of("c", base=2), epoch=7)


def test_nothing_of_a_damaged_run_is_written(store: Any) -> None:
    run = bytearray(run_of("a", "b", "c"))
    run[-1] ^= 1
    assert "CRC" in refused(store, bytes(run))


def test_markers_that_are_none_are_refused(store: Any) -> None:
    facts = {"producer_id": 1, "producer_epoch": 0, "transactional": True, "control": True}
    assert "without version" in refused(store, run_of("x", **facts))
    assert "is compressed" in refused(store, run_of("x" * 99, codec=Codec.GZIP, **facts))


def test_producers_are_entered_and_not_checked(store: Any) -> None:
    """Followers enter producers without checking their sequences. A gap is the leader's business: the leader
    forgot the producer, or compaction removed batches.
    """
    run = run_of("a", producer_id=7, producer_epoch=1, base_sequence=5)
    run += run_of("b", base=1, producer_id=7, producer_epoch=1, base_sequence=90, transactional=True)
    run += run_of("c", base=2, producer_id=8, producer_epoch=0, base_sequence=0, transactional=True)
    run += build_end_marker(
        0, timestamp_ms=1, producer_id=7, producer_epoch=2, coordinator_epoch=4, base_offset=3, leader_epoch=3
    )
    store.log.copier.append(run, EPOCH, store.now)
    producers = store.log.producers.producers
    assert (producers[7].epoch, producers[7].coordinator_epoch, producers[7].txn_first_offset) == (2, 4, -1)
    assert (producers[8].next_sequence, producers[8].txn_first_offset) == (1, 2)
    assert store.log.reader.aborted(0, 4) == [(7, 1, 3, 2)]
    assert store.log.first_unstable_offset == 1, "until the high watermark has passed the marker"
    store.log.replicated_to(4)
    assert store.log.first_unstable_offset == 2


@pytest.mark.parametrize("room", [0, 100, 700])
def test_a_disk_that_fills_up_takes_the_folder_offline(new_store: Any, room: int) -> None:
    new_store.disk = FaultyDisk()
    new_store.configure(segment_bytes=500)
    new_store.open()
    run = run_of(*("x" * 60 for _ in range(10)))
    new_store.disk.fill_up(room)
    for _ in range(2):
        with pytest.raises(KafkaError) as caught:
            new_store.log.copier.append(run, EPOCH, new_store.now)
        assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert len(new_store.offline) == 1
    new_store.kill()
    new_store.disk = None
    new_store.open()
    written = content(new_store)
    assert run.startswith(written) and len(written) <= room


def test_lengths_that_lie_allocate_nothing() -> None:
    run = bytearray(run_of("a", "b", "c"))
    size = len(run) // 3
    for length in (2**31 - 1, 2**30, -1, -(2**31), 0, 48, 3 * size):
        lying = bytearray(run)
        lying[size + 8 : size + 12] = length.to_bytes(4, "big", signed=True)
        tracemalloc.start()
        try:
            assert len(check_run(lying, due=0, epoch=-1, epoch_max=EPOCH).headers) == 1
        except CorruptRecordBatch:
            assert length < 2**30
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 20_000


def whole_run(seed: int) -> bytes:
    rng = random.Random(seed)
    run, base = b"", 0
    for number in range(rng.randint(1, 6)):
        count = rng.randint(1, 4)
        producer_id = rng.choice((-1, 4))
        if producer_id > 0 and rng.random() < 0.3:
            run += build_end_marker(
                rng.randint(0, 1),
                timestamp_ms=5,
                producer_id=4,
                producer_epoch=0,
                coordinator_epoch=0,
                base_offset=base,
                leader_epoch=EPOCH,
            )
            count = 1
        else:
            run += build_batch(
                [(9, b"k", rng.randbytes(rng.randint(0, 50)), ())] * count,
                base_offset=base,
                leader_epoch=EPOCH,
                codec=Codec(rng.choice((0, 1, 2, 3, 4))),
                producer_id=producer_id,
                producer_epoch=0 if producer_id > 0 else -1,
                base_sequence=number if producer_id > 0 else -1,
                transactional=producer_id > 0,
            )
        base += count + rng.choice((0, 0, 3))
    return run


@given(
    seed=st.integers(0, 10_000),
    places=st.lists(st.tuples(st.integers(0, 10_000), st.integers(1, 255)), max_size=3),
    cut=st.integers(0, 10_000),
    crc_is_mended=st.booleans(),
)
@example(seed=0, places=[(0, 128)], cut=0, crc_is_mended=False)
def test_mutated_runs(
    seed: int,
    places: list[tuple[int, int]],
    cut: int,
    crc_is_mended: bool,
    make_store: Any,
    tmp_path_factory: Any,
) -> None:
    """Mutated runs are refused with CORRUPT_MESSAGE, or what is written of them is consistent, and recovery
    finds it again.
    """
    run = whole_run(seed)
    mutated = bytearray(run[: len(run) - cut % len(run)])
    for place, bits in places:
        if mutated:
            mutated[place % len(mutated)] ^= bits
    if crc_is_mended and len(mutated) >= HEADER_SIZE:  # a leader that means it
        size = 12 + int.from_bytes(mutated[8:12], "big", signed=True)
        if HEADER_SIZE <= size <= len(mutated):
            mutated[17:21] = compute_crc(mutated, 0, size).to_bytes(4, "big")
    store = make_store(tmp_path_factory.mktemp("copied"))
    store.configure(segment_bytes=300, index_interval_bytes=0)
    store.open()
    try:
        before = state(store)
        error, copied = appended(store, bytes(mutated))
        if copied is None:
            assert error == ErrorCode.CORRUPT_MESSAGE and state(store) == before
            return
        written = b""
        while (piece := store.log.reader.read(_end(written), 1 << 20)) is not None:
            written += read_slice(piece)
        assert written == mutated[: copied.size]
        if not crc_is_mended:
            for _, header in iter_batches(written):
                assert header.partition_leader_epoch == EPOCH
        end = store.log.log_end_offset
        store.log.flusher.flush()
        store.folder.start_checkpoint()()
        store.reopen(clean=False)
        assert store.log.log_end_offset == end and store.log.size == len(written)
    finally:
        store.kill()


def appended(store: Any, run: bytes) -> tuple[int, CopiedRun | None]:
    try:
        return 0, store.log.copier.append(run, EPOCH, store.now)
    except KafkaError as error:
        return error.code, None


def _end(run: bytes) -> int:
    return max((header.next_offset for _, header in iter_batches(run)), default=0)
