"""Tests of transactions in a log: admission, the last stable offset, markers, and what a restart restores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.records import ABORT, build_end_marker, decode_records, parse_control, parse_end_marker
from logd.storage import AbortedTransaction, Appended
from logd.storage.disk import read_slice
from logd.storage.producers.producer import Producer
from logd.storage.testing import FaultyDisk

PID = 4711
MAX_SEQUENCE = 2**31 - 1

Send = Callable[..., Appended]


@pytest.fixture
def send(store: Any, batch: Any) -> Send:
    """Appends `count` records of a producer in its transaction; `sequence` goes on by itself if None."""
    sequences: dict[tuple[int, int], int] = {}

    def send(
        count: int = 1, *, pid: int = PID, epoch: int = 0, sequence: int | None = None, **facts: Any
    ) -> Appended:
        first = sequences.get((pid, epoch), 0) if sequence is None else sequence
        records = batch(
            *["x" * facts.pop("size", 1)] * count,
            producer_id=pid,
            producer_epoch=epoch,
            base_sequence=first,
            transactional=facts.pop("transactional", True),
        )
        appended: Appended = store.log.writer.append(records, 0, store.now, **facts)
        sequences[pid, epoch] = first + count
        return appended

    return send


@pytest.fixture
def end(store: Any) -> Send:
    """Ends a producer's transaction with a marker, which the high watermark passes at once."""

    def end(commit: bool, *, pid: int = PID, epoch: int = 0, coordinator: int = 0, **facts: Any) -> Appended:
        appended: Appended = store.log.writer.append_marker(
            producer_id=pid,
            producer_epoch=epoch,
            commit=commit,
            coordinator_epoch=coordinator,
            leader_epoch=0,
            now_ms=store.now,
            **facts,
        )
        store.log.replicated_to(store.log.log_end_offset)
        return appended

    return end


def refusal(action: Callable[..., Any], *arguments: Any, **facts: Any) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        action(*arguments, **facts)
    return caught.value.code


def producer(store: Any, pid: int = PID) -> Producer:
    state: Producer = store.log.producers.producers[pid]
    return state


# Markers


def test_a_marker_is_a_control_batch_like_kafkas(send: Send, end: Send, store: Any) -> None:
    send(3)
    assert end(False, coordinator=5) == Appended(3, 3, -1, 0)
    data = read_slice(store.log.reader.read(3, 1000))
    whole = build_end_marker(
        ABORT, timestamp_ms=store.now, producer_id=PID, producer_epoch=0, coordinator_epoch=5, base_offset=3
    )
    assert data == whole[:12] + (0).to_bytes(4, "big") + whole[16:], "but for the leader epoch"
    ((_, time, key, value, _),) = decode_records(data)
    assert (time, parse_control(key), parse_end_marker(value)) == (store.now, (0, ABORT), 5)


def test_a_marker_with_nothing_open_is_written_and_changes_little(send: Send, end: Send, store: Any) -> None:
    assert end(False).base_offset == 0
    assert store.log.reader.aborted(0, 10) == [] and store.log.first_unstable_offset is None
    assert not [name for name in store.files() if "txnindex" in name]
    assert (producer(store).epoch, producer(store).coordinator_epoch) == (0, 0)
    assert send().base_offset == 1


def test_a_marker_of_an_older_epoch_is_refused(send: Send, end: Send, store: Any) -> None:
    send(epoch=3)
    assert refusal(end, True, epoch=2) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert store.log.log_end_offset == 1 and store.log.first_unstable_offset == 0
    assert end(True, epoch=3).base_offset == 1


def test_a_marker_of_an_older_coordinator_is_refused(send: Send, end: Send) -> None:
    send()
    end(True, coordinator=4)
    send()
    assert refusal(end, True, coordinator=3) is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    end(False, coordinator=4)
    send()
    end(True, coordinator=7)


def test_a_marker_brings_the_next_epoch(send: Send, end: Send, store: Any) -> None:
    """KIP-890: the marker's epoch fences the transaction's own late batches, and sequences begin again."""
    send(3)
    end(True, epoch=1, transaction_version=2)
    assert (producer(store).epoch, producer(store).last_sequence) == (1, -1)
    assert refusal(send, 1, sequence=3) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert refusal(send, 1, epoch=1, sequence=3) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(2, epoch=1, sequence=0).base_offset == 4
    assert send(2, epoch=1, sequence=0).duplicate
    assert send(1, epoch=1, sequence=2).base_offset == 6


def test_a_marker_come_late_does_not_end_the_next_transaction(send: Send, end: Send, store: Any) -> None:
    """KAFKA-19446: with transaction version 2 a marker is always an epoch ahead of what it ends."""
    send()
    end(True, epoch=1, transaction_version=2)
    assert end(True, epoch=1, transaction_version=2).base_offset == 2, "again, with nothing open: no harm"
    send(epoch=1, sequence=0)
    assert refusal(end, False, epoch=1, transaction_version=2) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert store.log.first_unstable_offset == 3
    end(False, epoch=2, transaction_version=2)
    assert store.log.first_unstable_offset is None


def test_a_marker_that_comes_again_is_not_written(send: Send, end: Send, store: Any) -> None:
    """Up to transaction version 1 it would end the next transaction, which has the same epoch."""
    send()
    first = end(False, transaction_number=7)
    assert not first.duplicate
    send()
    written = store.log.log_end_offset
    for number in (7, 3):
        again = end(False, transaction_number=number)
        assert (again.duplicate, again.last_offset) == (True, first.last_offset)
    assert store.log.log_end_offset == written
    assert store.log.producers.has_open_transaction(PID)
    second = end(True, transaction_number=9)
    assert not second.duplicate
    assert (end(True, transaction_number=9).duplicate, producer(store).txn_first_offset) == (True, -1)


@pytest.mark.parametrize("facts", [{"coordinator": 1, "transaction_number": 2}, {}])
def test_a_marker_is_written_whose_number_says_nothing(facts: dict[str, int], send: Send, end: Send) -> None:
    """Markers are written whose transaction number says nothing: they come from another coordinator's term,
    whose log may differ, or their coordinator sends none.
    """
    send()
    end(False, transaction_number=7)
    send()
    assert not end(True, **facts).duplicate


def test_a_truncation_forgets_the_marker_that_it_takes(send: Send, end: Send, store: Any) -> None:
    send()
    marker = end(True, transaction_number=7)
    store.log.shortening.truncate_to(marker.last_offset, store.now)
    assert not end(True, transaction_number=7).duplicate


def test_markers_may_come_as_batches(send: Send, store: Any) -> None:
    """Logs take markers as batches, as a follower or a copy of the log gets them."""
    send(2)
    marker = build_end_marker(ABORT, timestamp_ms=1, producer_id=PID, producer_epoch=0, coordinator_epoch=9)
    assert store.log.writer.append(marker, 0, store.now).base_offset == 2
    assert store.log.reader.aborted(0, 3) == [AbortedTransaction(PID, 0, 2, 3)]
    assert producer(store).coordinator_epoch == 9


def test_a_control_batch_that_ends_nothing_is_refused(batch: Any, store: Any) -> None:
    facts = {"producer_id": 1, "producer_epoch": 0, "control": True, "transactional": True}
    assert refusal(store.log.writer.append, batch("x", **facts), 0, store.now) is ErrorCode.INVALID_RECORD


# Batches


def test_a_batch_outside_of_the_open_transaction_is_refused(send: Send, end: Send, store: Any) -> None:
    send(transactional=False)
    send()
    assert refusal(send, transactional=False) is ErrorCode.INVALID_TXN_STATE
    send()
    assert store.log.log_end_offset == 3
    end(True)
    send(transactional=False)
    send()


def test_five_batches_in_flight_are_recognised_in_a_transaction(send: Send, end: Send) -> None:
    for number in range(6):
        send(2, sequence=2 * number)
    for number in range(1, 6):
        again = send(2, sequence=2 * number)
        assert (again.duplicate, again.base_offset) == (True, 2 * number)
    assert refusal(send, 2, sequence=0) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    end(True)
    assert send(2, sequence=10).duplicate, "an answer lost before the marker"
    assert send(1, sequence=12).base_offset == 13


def test_the_sequence_wraps_in_a_transaction(send: Send, end: Send) -> None:
    send(2, sequence=MAX_SEQUENCE - 2)
    assert send(3, sequence=MAX_SEQUENCE).base_offset == 2
    end(False)
    assert send(3, sequence=MAX_SEQUENCE).duplicate
    assert send(1, sequence=2).base_offset == 6


def test_a_coordinators_batches_carry_no_sequence_of_their_own(send: Send, end: Send, store: Any) -> None:
    """Offsets in a transaction: the group coordinator writes them in the producer's name."""
    for _ in range(3):
        assert not send(1, sequence=0, from_client=False).duplicate
    assert store.log.first_unstable_offset == 0
    assert refusal(send, 1, sequence=0, from_client=False, transactional=False) is ErrorCode.INVALID_TXN_STATE
    end(True, epoch=1)
    assert refusal(send, 1, sequence=0, from_client=False) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert send(1, epoch=1, sequence=0, from_client=False).base_offset == 4


# The last stable offset


def test_the_first_unstable_offset_is_the_oldest_open_transactions(send: Send, end: Send, store: Any) -> None:
    log = store.log
    assert log.first_unstable_offset is None
    store.append("plain")
    send(2, pid=1)
    send(2, pid=2)
    send(2, pid=1)
    assert log.first_unstable_offset == 1
    end(True, pid=2)
    assert log.first_unstable_offset == 1
    send(pid=2)
    end(False, pid=1)
    assert log.first_unstable_offset == 8
    end(True, pid=2)
    assert log.first_unstable_offset is None


def test_a_transaction_is_unstable_until_the_high_watermark_has_passed_its_marker(
    send: Send, store: Any
) -> None:
    log = store.log
    facts = {"producer_epoch": 0, "coordinator_epoch": 0, "leader_epoch": 0, "now_ms": store.now}
    send(pid=1)
    send(pid=2)
    send(pid=3)
    log.writer.append_marker(producer_id=2, commit=True, **facts)
    log.writer.append_marker(producer_id=1, commit=False, **facts)
    assert log.first_unstable_offset == 0
    log.replicated_to(3)
    assert log.first_unstable_offset == 0
    log.replicated_to(4)
    assert log.first_unstable_offset == 0
    log.replicated_to(5)
    assert log.first_unstable_offset == 2
    assert log.reader.aborted(0, 5) == [AbortedTransaction(1, 0, 4, 2)], (
        "what has ended counts as ended there"
    )


def test_deleted_records_take_the_first_unstable_offset_along(send: Send, end: Send, store: Any) -> None:
    store.configure(segment_bytes=100)
    for _ in range(4):
        send()
    store.log.shortening.delete_records_before(2)
    assert store.log.first_unstable_offset == 2
    end(False)
    assert store.log.first_unstable_offset is None
    assert store.log.reader.aborted(2, 4) == [AbortedTransaction(PID, 0, 4, 5)]


def test_retention_passes_an_open_transaction(send: Send, end: Send, store: Any) -> None:
    """Retention deletes records of an open transaction, as in Apache Kafka: a hanging transaction must not
    fill the disk.
    """
    store.configure(segment_bytes=100, retention_ms=1000)
    store.append("old")
    send()
    send()
    store.now += 10_000
    store.log.shortening.apply_retention(store.now)
    assert store.log.log_start_offset == store.log.log_end_offset == 3
    assert store.log.first_unstable_offset == 3
    end(True)
    assert store.log.first_unstable_offset is None


def test_retention_never_passes_the_high_watermark(send: Send, store: Any) -> None:
    store.configure(segment_bytes=100, retention_ms=1000)
    for _ in range(4):
        store.append("x")
    store.log.shortening.apply_retention(store.now + 10_000, upper_bound=2)
    assert store.log.log_start_offset == 2


# Aborted transactions


def test_aborted_transactions_are_found_over_segments(send: Send, end: Send, store: Any) -> None:
    store.configure(segment_bytes=200)
    expected = []
    for pid in range(1, 9):
        first = send(2, pid=pid).base_offset
        marker = end(pid % 2 == 0, pid=pid).base_offset
        if pid % 2:
            expected.append(AbortedTransaction(pid, first, marker, marker + 1))
    end_offset = store.log.log_end_offset
    assert len([name for name in store.files() if name.endswith(".txnindex")]) > 1
    assert store.log.reader.aborted(0, end_offset) == expected
    for start in range(end_offset):
        for stop in range(start + 1, end_offset + 1):
            assert store.log.reader.aborted(start, stop) == [
                entry for entry in expected if entry.last_offset >= start and entry.first_offset < stop
            ]


def test_aborted_transactions_come_by_their_first_offsets(send: Send, end: Send, store: Any) -> None:
    send(pid=1)
    send(pid=2)
    end(False, pid=2)
    end(False, pid=1)
    assert [entry[:3] for entry in store.log.reader.aborted(0, 4)] == [(1, 0, 3), (2, 1, 2)]


def test_a_transaction_index_goes_with_its_segment(send: Send, end: Send, store: Any) -> None:
    store.configure(segment_bytes=150, file_delete_delay_ms=60_000)
    for _ in range(3):
        send()
        end(False)
    indexes = sorted(name for name in store.files() if name.endswith(".txnindex"))
    (deletion,) = store.log.shortening.delete_records_before(store.log.log_end_offset)
    deletion.hide()
    assert {f"{name}.deleted" for name in indexes[:-1]} <= store.files()
    deletion.run()
    assert not [name for name in store.files() if name.endswith(".deleted")]


# Truncation


def test_truncation_opens_the_transaction_again(send: Send, end: Send, store: Any) -> None:
    store.append("plain")
    send(2)
    end(False)
    send(2)
    store.log.shortening.truncate_to(4, store.now)
    store.log.replicated_to(4)
    assert store.log.first_unstable_offset is None and len(store.log.reader.aborted(0, 4)) == 1
    store.log.shortening.truncate_to(3, store.now)
    store.log.replicated_to(3)
    assert store.log.first_unstable_offset == 1 and store.log.reader.aborted(0, 3) == []
    assert end(True).base_offset == 3
    assert store.log.reader.aborted(0, 4) == []
    store.reopen(clean=False)
    assert store.log.reader.aborted(0, 4) == []


# Restarts


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("segment_bytes", [120, 10**6])
@pytest.mark.parametrize("flush_at", [None, 0, 1, 2, 3])
def test_a_restart_remembers_transactions(
    send: Send, end: Send, store: Any, clean: bool, segment_bytes: int, flush_at: int | None
) -> None:
    store.configure(segment_bytes=segment_bytes)
    for number in range(4):
        send(pid=1)
        send(pid=2, epoch=3)
        end(False, pid=1, coordinator=number)
        if number == flush_at:
            store.log.flusher.flush()
            store.folder.start_checkpoint()()
    send(pid=1)
    before = store.log.reader.aborted(0, store.log.log_end_offset)
    assert len(before) == 4 and before[0] == AbortedTransaction(1, 0, 2, 1)
    log = store.reopen(clean=clean)
    assert log.reader.aborted(0, log.log_end_offset) == before
    log.replicated_to(log.log_end_offset)
    assert log.first_unstable_offset == 1
    assert log.producers.has_open_transaction(1) and log.producers.has_open_transaction(2, 3)
    assert not log.producers.has_open_transaction(2, 2)
    assert producer(store, 1).coordinator_epoch == 3
    end(True, pid=2, epoch=3)
    assert log.first_unstable_offset == 12
    send(pid=1)
    end(True, pid=1, coordinator=3)
    assert log.first_unstable_offset is None


@pytest.mark.parametrize("torn", [0, 1, 33, 34, 40, 67])
def test_a_torn_transaction_index_is_made_again(send: Send, end: Send, store: Any, torn: int) -> None:
    """Recovery completes a transaction index that a power loss cut, between entries or in one."""
    send()
    end(False)
    store.log.flusher.flush()
    store.folder.start_checkpoint()()
    send()
    end(False)
    send(epoch=5, sequence=0)
    end(False, epoch=6)
    before = store.log.reader.aborted(0, 6)
    store.kill()
    index = store.log_path / "00000000000000000000.txnindex"
    index.write_bytes(index.read_bytes()[: 34 + torn])
    store.open()
    assert store.log.reader.aborted(0, 6) == before and len(before) == 3
    assert index.read_bytes() == (store.log_path / index.name).read_bytes() and index.stat().st_size == 102


def test_a_log_cut_in_a_transaction_has_it_open_again(send: Send, end: Send, store: Any) -> None:
    """Transactions whose marker was lost are open again, although the marker's index entry had reached the
    disk.
    """
    send(2)
    end(False)
    store.kill()
    log = store.log_path / "00000000000000000000.log"
    log.write_bytes(log.read_bytes()[:-1])
    store.open()
    store.log.replicated_to(store.log.log_end_offset)
    assert (store.log.log_end_offset, store.log.first_unstable_offset) == (2, 0)
    assert store.log.reader.aborted(0, 2) == []
    assert (store.log_path / "00000000000000000000.txnindex").stat().st_size == 0


@pytest.mark.parametrize("clean", [True, False])
def test_a_damaged_index_of_flushed_segments_is_made_again(
    send: Send, end: Send, store: Any, clean: bool
) -> None:
    store.configure(segment_bytes=160)
    for _ in range(6):
        send()
        end(False)
    before = store.log.reader.aborted(0, 12)
    store.log.flusher.flush()
    store.folder.start_checkpoint()()
    if clean:
        store.close()
    else:
        store.kill()
    indexes = sorted(store.log_path.glob("*.txnindex"))
    assert len(indexes) > 3
    whole = indexes[1].read_bytes()
    indexes[1].write_bytes(whole[:-3])
    store.open()
    assert store.log.reader.aborted(0, 12) == before
    assert indexes[1].read_bytes() == whole
    assert send().base_offset == 12


def test_the_index_of_a_segment_half_deleted_is_not_taken_for_a_new_ones(
    send: Send, end: Send, store: Any
) -> None:
    send()
    end(False)
    store.close()
    for name in store.files():
        if name.endswith((".log", ".index", ".timeindex", ".snapshot")):
            (store.log_path / name).unlink()
    store.open()
    assert (store.log.log_end_offset, store.log.reader.aborted(0, 10)) == (0, [])
    assert not (store.log_path / "00000000000000000000.txnindex").exists()


def test_an_abort_is_forced_to_the_disk_before_the_recovery_point_passes_it(
    new_store: Any, batch: Any
) -> None:
    disk = FaultyDisk()
    new_store.disk = disk
    new_store.open()
    records = batch("x", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    new_store.log.writer.append(records, 0, new_store.now)
    new_store.log.writer.append_marker(
        producer_id=1, producer_epoch=0, commit=False, coordinator_epoch=0, leader_epoch=0, now_ms=0
    )
    assert ("sync", "00000000000000000000.txnindex") not in disk.done
    new_store.log.flusher.flush()
    assert ("sync", "00000000000000000000.txnindex") in disk.done


def test_a_disk_that_cannot_take_the_abort_takes_the_folder_offline(new_store: Any, batch: Any) -> None:
    disk = FaultyDisk()
    new_store.disk = disk
    new_store.open()
    records = batch("x", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    new_store.log.writer.append(records, 0, new_store.now)
    disk.failing, disk.suffix = {"write"}, ".txnindex"
    facts = {"producer_epoch": 0, "coordinator_epoch": 0, "leader_epoch": 0, "now_ms": new_store.now}
    code = refusal(new_store.log.writer.append_marker, producer_id=1, commit=False, **facts)
    assert code is ErrorCode.KAFKA_STORAGE_ERROR and new_store.offline
    disk.failing = set()
    new_store.reopen(clean=False)
    assert new_store.log.reader.aborted(0, 2) == [AbortedTransaction(1, 0, 1, 2)], (
        "the marker itself was written"
    )


# Producers that are silent


def test_a_producer_expires_once_its_transaction_has_ended(send: Send, end: Send, store: Any) -> None:
    send()
    assert store.log.expire_producers(store.now + 10**9, 1000) == 0
    store.now += 5000
    end(True)
    assert store.log.expire_producers(store.now + 999, 1000) == 0, "the marker is a sign of life"
    assert store.log.expire_producers(store.now + 1000, 1000) == 1
