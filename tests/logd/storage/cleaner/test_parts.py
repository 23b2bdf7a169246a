"""The cleaner's parts, each by itself."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from kafka_client.records import build_batch, decode_records
from kafka_client.records.build import seal
from kafka_client.records.header import HEADER_SIZE, LOG_OVERHEAD, read_header
from logd.storage.cleaner.grouping import GROUP_SEGMENTS_MAX, DeferredBatches, Group, bytes_max
from logd.storage.cleaner.messages import LENGTH, Cancel, Done, Failed, Order, Report, Source, Task, frame
from logd.storage.cleaner.offset_map import SLOT_BYTES, OffsetMap
from logd.storage.cleaner.retiming import retime
from logd.storage.cleaner.throttle import Throttle
from logd.storage.cleaner.transactions import Transactions
from logd.storage.cleaner.writing import CleanedSegment
from logd.storage.disk import PosixDisk

RECORDS = st.lists(
    st.tuples(
        st.integers(-(2**40), 2**40),
        st.one_of(st.none(), st.binary(max_size=200)),
        st.one_of(st.none(), st.binary(max_size=300), st.just(b"x" * 20_000)),
        st.lists(st.tuples(st.text(max_size=3), st.one_of(st.none(), st.binary(max_size=3))), max_size=2).map(
            tuple
        ),
    ),
    min_size=1,
    max_size=20,
)

TASK = Task(
    directory="",
    sources=[],
    first_dirty=5,
    last_stable_offset=5,
    now_ms=0,
    delete_retention_ms=0,
    segment_bytes=1000,
    segment_index_bytes=1000,
    index_interval_bytes=10,
    aborted=[(1, 2, 3, 4)],
    producers=[(1, 2, 3)],
)


# The offset map


@given(st.lists(st.binary(max_size=4), max_size=300), st.floats(0.1, 0.99))
def test_the_map_is_a_dict(keys: list[bytes], load_factor: float) -> None:
    offsets, model = OffsetMap(10**6, load_factor, len(keys)), {}
    for offset, key in enumerate(keys):
        assert offsets.put(key, offset)
        model[key] = offset
    assert offsets.count == len(model)
    for key, offset in model.items():
        assert offsets.get(key) == offset
    assert offsets.get(b"not there") == -1


def test_the_map_stays_within_its_memory() -> None:
    offsets = OffsetMap(SLOT_BYTES * 100, 0.9, 10**9)
    assert offsets.room == 90
    for number in range(90):
        assert offsets.put(b"%d" % number, number)
    assert not offsets.put(b"one more", 90)
    assert offsets.put(b"5", 91), "a key that is in"
    assert (offsets.get(b"5"), offsets.latest, offsets.get(b"one more")) == (91, 91, -1)


def test_a_small_log_takes_little_memory() -> None:
    assert OffsetMap(128 * 1024 * 1024, 0.9, 10)._slots < 20
    assert OffsetMap(1, 0.9, 0).room == 1


# Records' times


@given(RECORDS, st.sampled_from([0, 1, -12_345, 1 << 40]))
def test_records_counted_from_another_base_keep_all_but_their_times(records: list[Any], shift: int) -> None:
    batch = build_batch(records)
    header = read_header(batch)
    body = batch[HEADER_SIZE:]
    shifted = retime(body, shift)
    assert retime(shifted, -shift) == body
    moved = seal(header._replace(batch_length=HEADER_SIZE - LOG_OVERHEAD + len(shifted)), shifted)
    assert decode_records(moved) == [(o, time + shift, *rest) for o, time, *rest in decode_records(batch)]


# Groups


def group(tmp_path: Path, **limits: int) -> Group:
    """Return a group that holds one segment of 50 bytes."""
    facts = {"segment_bytes": 100, "segment_index_bytes": 10_000, "index_interval_bytes": 10, **limits}
    written = CleanedSegment(PosixDisk(), tmp_path, 0, index_interval=10, buffer_bytes=100)
    written.size = 50
    made = Group(written, bytes_max(msgspec.structs.replace(TASK, **facts)))
    made.join(Source(0, 50, 10), [], is_changed=False)
    written.abandon()
    return made


def test_segments_are_grouped_within_their_limits(tmp_path: Path) -> None:
    assert group(tmp_path).has_room(Source(10, 50, 20))
    assert not group(tmp_path).has_room(Source(10, 51, 20))
    assert not group(tmp_path, segment_index_bytes=24).has_room(Source(10, 50, 20))
    assert not group(tmp_path).has_room(Source(10, 1, 2**31 + 1))
    full = group(tmp_path)
    assert not full.is_changed
    for number in range(1, GROUP_SEGMENTS_MAX):
        assert not full.is_full
        full.join(Source(number * 10, 0, number * 10 + 10), [], is_changed=False)
    assert full.is_full and full.is_changed


def test_what_stays_of_a_segment_decides_whether_it_joins(tmp_path: Path) -> None:
    def fits(size: int, last_offset: int = 19, **limits: int) -> bool:
        deferred = DeferredBatches(limits.pop("held_bytes", 100))
        header = read_header(build_batch([(0, b"k", b"v", ())], base_offset=last_offset))
        deferred.append(header, 0, bytes(size))
        return group(tmp_path, **limits).takes(deferred)

    assert group(tmp_path).takes(DeferredBatches(100)), "nothing stays"
    assert fits(50)
    assert not fits(51)
    assert not fits(50, held_bytes=49)
    assert not fits(1, 2**31)


# Transactions


def test_a_marker_may_go_once_its_records_are_gone() -> None:
    def data(base: int, producer: int = 1) -> Any:
        return read_header(
            build_batch(
                [(0, b"k", b"v", ())],
                base_offset=base,
                producer_id=producer,
                producer_epoch=0,
                base_sequence=0,
                transactional=True,
            )
        )

    def marker(base: int, kind: int, producer: int = 1) -> tuple[Any, memoryview]:
        batch = build_batch(
            [(0, kind.to_bytes(4, "big"), bytes(6), ())],
            base_offset=base,
            producer_id=producer,
            producer_epoch=0,
            transactional=True,
            control=True,
        )
        return read_header(batch), memoryview(batch)

    transactions = Transactions([(1, 20, 22, 23), (1, 0, 2, 3), (2, 5, 30, 31)])
    assert transactions.data(data(1))
    assert not transactions.control(*marker(2, 0))
    assert transactions.index_entries == [(1, 0, 2, 3)]
    assert not transactions.data(data(10))
    assert not transactions.control(*marker(11, 1))
    assert transactions.control(*marker(12, 1)), "nothing of it was met"
    assert transactions.control(*marker(22, 0)), "nothing of it was met"
    assert transactions.data(data(25, 2))
    assert not transactions.control(*marker(30, 0, 2))
    assert not transactions.control(*marker(31, 4)), "no marker of a transaction"


# The rate


def test_the_rate_is_kept() -> None:
    now, slept = 0.0, []

    def sleep(seconds: float) -> None:
        nonlocal now
        slept.append(seconds)
        now += seconds

    throttle = Throttle(1000, clock=lambda: now, sleep=sleep)
    for _ in range(100):
        throttle.count(100)
    assert 8.9 <= now <= 10.1
    now += 100
    slept.clear()
    throttle.count(900)
    assert not slept, "a second is saved up"
    throttle.count(1100)
    assert slept


# The process


def test_the_process_speaks_frames_and_ends_with_its_stdin(tmp_path: Any) -> None:
    task = msgspec.structs.replace(TASK, directory=str(tmp_path))
    vanished = msgspec.structs.replace(task, sources=[Source(0, 100, 10)], first_dirty=0)
    sent = b"".join(map(frame, (task, Cancel(), vanished)))
    with subprocess.Popen(
        [sys.executable, "-m", "logd.storage.cleaner"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(sent)
        process.stdin.flush()
        done, failed = _report(process.stdout), _report(process.stdout)
        process.stdin.close()
        assert process.wait(100) == 0
    assert isinstance(done, Done) and done.first_dirty == 5
    assert isinstance(failed, Failed) and failed.reason == "gone"
    assert msgspec.msgpack.decode(frame(task)[LENGTH.size :], type=Order) == task


def _report(stream: Any) -> Any:
    assert isinstance(stream, io.BufferedReader)
    size = LENGTH.unpack(stream.read(LENGTH.size))[0]
    return msgspec.msgpack.decode(stream.read(size), type=Report)
