"""Tests of idempotent producers: batches that are appended, duplicates, refusals, and what a restart
restores.
"""

from __future__ import annotations

import struct
from typing import Any

import crc32c
import pytest

from kafka_client.errors import ErrorCode, Fenced, KafkaError
from logd.storage import Appended
from logd.storage.log.rolling import roll
from logd.storage.producers.producer import Producer
from logd.storage.producers.row import ROW, pack_row
from logd.storage.producers.snapshot import MORE, decode_snapshot, encode_snapshot
from logd.storage.producers.state import PACKED_AT, ProducerState
from tests.support.depth import deep

PID = 4711
MAX_SEQUENCE = 2**31 - 1


@pytest.fixture
def send(store: Any, batch: Any) -> Any:
    """Appends `count` records of producer 4711."""

    def send(sequence: int, count: int = 1, *, epoch: int = 0, pid: int = PID) -> Appended:
        records = batch(*"x" * count, producer_id=pid, producer_epoch=epoch, base_sequence=sequence)
        appended: Appended = store.log.writer.append(records, 0, store.now)
        return appended

    return send


def test_batches_in_sequence_are_taken(send: Any) -> None:
    assert [send(0, 3).base_offset, send(3, 2).base_offset, send(5).base_offset] == [0, 3, 5]


def test_the_last_five_batches_are_recognised(send: Any, store: Any) -> None:
    for number in range(7):
        send(number * 2, 2)
    end = store.log.log_end_offset
    for number in range(2, 7):
        again = send(number * 2, 2)
        assert (again.duplicate, again.base_offset, again.last_offset) == (True, number * 2, number * 2 + 1)
    with pytest.raises(KafkaError) as caught:
        send(2, 2)
    assert caught.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert store.log.log_end_offset == end


def test_a_batch_that_only_overlaps_is_no_duplicate(send: Any) -> None:
    send(0, 4)
    for sequence, count in ((0, 3), (1, 3), (2, 4)):
        with pytest.raises(KafkaError) as caught:
            send(sequence, count)
        assert caught.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_gap_is_refused(send: Any, store: Any) -> None:
    send(0)
    with pytest.raises(KafkaError, match="sequence 2 came, 1 was due") as caught:
        send(2)
    assert caught.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(1).base_offset == 1


def test_an_unknown_producer_may_begin_anywhere(send: Any) -> None:
    """KIP-360: its earlier records may have been deleted, or it expired."""
    assert send(17).base_offset == 0
    assert send(18).base_offset == 1


def test_a_new_epoch_begins_at_zero_and_fences_the_old(send: Any) -> None:
    send(0, 3, epoch=1)
    with pytest.raises(KafkaError) as caught:
        send(3, epoch=2)
    assert caught.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    send(0, epoch=2)
    with pytest.raises(Fenced) as fenced:
        send(3, epoch=1)
    assert fenced.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
    assert send(1, epoch=2).base_offset == 4


def test_the_sequence_wraps(send: Any) -> None:
    send(MAX_SEQUENCE - 2, 2)
    wrapping = send(MAX_SEQUENCE, 3)
    assert send(MAX_SEQUENCE, 3) == wrapping._replace(duplicate=True)
    assert send(2).base_offset == wrapping.last_offset + 1
    send(3)


def test_the_sequence_wraps_at_a_batch(send: Any) -> None:
    send(MAX_SEQUENCE - 1, 2)
    send(0)
    assert send(MAX_SEQUENCE - 1, 2).duplicate


def test_producers_do_not_mind_each_other(send: Any) -> None:
    send(0, 2, pid=1)
    send(0, 5, pid=2)
    send(2, pid=1)
    send(5, pid=2)


def test_a_duplicate_tells_when_it_was_written(send: Any, store: Any) -> None:
    store.configure(message_timestamp_type="LogAppendTime")
    store.now = 5000
    send(0)
    store.now = 6000
    assert send(0).log_append_time == 5000


@pytest.mark.parametrize("clean", [True, False])
def test_the_state_survives_a_restart(send: Any, store: Any, clean: bool) -> None:
    send(0, 3)
    send(3, 3)
    send(0, 1, epoch=4, pid=9)
    store.reopen(clean=clean)
    assert send(3, 3).duplicate
    with pytest.raises(KafkaError):
        send(7)
    with pytest.raises(Fenced):
        send(1, epoch=3, pid=9)
    assert send(6).base_offset == 7
    assert send(1, epoch=4, pid=9).base_offset == 8


def test_a_crash_after_rolls_replays_only_what_the_last_snapshot_lacks(send: Any, store: Any) -> None:
    store.configure(segment_bytes=200)
    for sequence in range(8):
        send(sequence)
    store.reopen(clean=False)
    assert send(7).duplicate
    assert send(8).base_offset == 8


@pytest.mark.parametrize("damage", ["torn", "flipped", "gone", "empty"])
def test_a_damaged_snapshot_is_passed_over(send: Any, store: Any, damage: str) -> None:
    store.configure(segment_bytes=200)
    for sequence in range(6):
        send(sequence)
    store.close()
    newest = sorted(store.log_path.glob("*.snapshot"))[-1]
    data = newest.read_bytes()
    if damage == "gone":
        newest.unlink()
    else:
        newest.write_bytes(
            {"torn": data[:-1], "flipped": data[:-1] + bytes([data[-1] ^ 1]), "empty": b""}[damage]
        )
    store.open()
    assert send(5).duplicate
    with pytest.raises(KafkaError):
        send(7)
    assert send(6).base_offset == 6


def test_snapshots_go_with_their_segments(send: Any, store: Any) -> None:
    store.configure(segment_bytes=100)
    for sequence in range(6):
        send(sequence)
    for deletion in store.log.shortening.delete_records_before(4):
        deletion.run()
    assert "00000000000000000004.snapshot" in store.files(), "what the deleted segments said of producers"
    store.log.flusher.flush()
    assert sorted(name for name in store.files() if "snapshot" in name) == [
        "00000000000000000004.snapshot",
        "00000000000000000005.snapshot",
    ]
    assert send(5).duplicate, "KIP-360: deleted records do not take their producer along"


def test_a_kill_before_the_flush_forgets_no_producer(send: Any, store: Any) -> None:
    """Producers are known after a kill although retention deleted their only segment. The segment was rolled,
    and no flush had written its producer snapshot yet.
    """
    store.configure(segment_bytes=100)
    send(0, pid=1)
    send(0, pid=2)
    for deletion in store.log.shortening.delete_records_before(1):
        deletion.run()
    store.reopen(clean=False)
    assert send(0, pid=1).duplicate


@deep
def test_a_snapshot_packs_what_has_changed(send: Any, store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """50,000 producers are known; three of them go on. Packing all of them for every snapshot would hold up
    the event loop again and again.
    """
    packed: list[int] = []

    def packing(producer_id: int, producer: Producer) -> bytes:
        packed.append(producer_id)
        return pack_row(producer_id, producer)

    many = {producer_id: Producer(0) for producer_id in range(100, 50_100)}
    for producer in many.values():
        producer.timestamp = store.now
    store.log.producers = ProducerState(many)
    store.reopen(clean=True)
    assert len(store.log.producers.producers) == 50_000
    monkeypatch.setattr("logd.storage.producers.state.pack_row", packing)
    for number in range(3):
        send(number, pid=7)
        send(0, pid=200 + number)
        roll(store.log, store.log.flusher, store.now)
    assert sorted(packed) == [7, 7, 7, 200, 201, 202]
    packed.clear()
    for producer_id in range(100, 100 + 2 * PACKED_AT):
        send(1 if producer_id in range(200, 203) else 0, pid=producer_id)
    assert len(packed) >= PACKED_AT, "a few at a time, not all at once when a snapshot is taken"
    store.reopen(clean=True)
    assert len(store.log.producers.producers) == 50_001
    assert store.log.producers.producers[7].next_sequence == 3
    assert store.log.producers.producers[202].next_sequence == 2


def test_producers_expire(send: Any, store: Any) -> None:
    send(0, pid=1)
    store.now += 500
    send(0, pid=2)
    assert store.log.expire_producers(store.now + 500, 1000) == 1
    assert send(40, pid=1).base_offset == 2, "forgotten, so any sequence will do"
    with pytest.raises(KafkaError):
        send(40, pid=2)


def test_expiry_goes_by_the_clock_not_by_the_records(batch: Any, store: Any) -> None:
    records = batch("old", timestamps=[1000], producer_id=1, producer_epoch=0, base_sequence=0)
    store.log.writer.append(records, 0, store.now)
    assert store.log.expire_producers(store.now + 999, 1000) == 0


def test_a_producer_in_a_transaction_does_not_expire(send: Any, store: Any) -> None:
    send(0)
    store.log.producers.producers[PID].txn_first_offset = 0
    assert store.log.expire_producers(store.now + 10**9, 1000) == 0


def test_the_snapshot_is_kafkas_byte_for_byte() -> None:
    """Producer snapshots are decoded and encoded as Kafka does. An Apache Kafka 4.1 broker wrote this one,
    with two producers of 428 records a batch.
    """
    data = bytes.fromhex(
        "0001 d5a2db3a 00000002"
        # id, epoch, last sequence, last offset, offset delta, timestamp, coordinator epoch, no transaction
        "0000000000000007 0000 0000176f 000000000000176f 000001ab 0000018bcfe57f6f ffffffff ffffffffffffffff"
        "0000000000000008 0000 00000863 0000000000001fd3 000001ab 0000018bcfe57063 ffffffff ffffffffffffffff"
    )
    state = decode_snapshot(data)
    assert [(pid, producer.epoch, producer.next_sequence) for pid, producer in state.producers.items()] == [
        (7, 0, 6000),
        (8, 0, 2148),
    ]
    assert state.producers[8].batches[-1].base_offset == 0x1FD3 - 0x1AB
    assert encode_snapshot(state.rows()) == data


def test_transaction_fields_pass_through_a_snapshot() -> None:
    assert decode_snapshot(encode_snapshot(ProducerState().rows())).producers == {}
    state = ProducerState()
    producer = Producer(2)
    producer.coordinator_epoch, producer.txn_first_offset, producer.timestamp = 5, 1000, 99
    state = ProducerState({7: producer})
    again = decode_snapshot(encode_snapshot(state.rows())).producers[7]
    assert (again.epoch, again.coordinator_epoch, again.txn_first_offset, again.timestamp) == (2, 5, 1000, 99)
    assert not again.batches and again.next_sequence == 0


def test_all_batches_in_flight_are_known_after_a_clean_stop(send: Any, store: Any) -> None:
    """Apache Kafka keeps the last alone, and takes the others for a gap."""
    first = [send(sequence) for sequence in range(7)]
    send(0, pid=8)
    store.reopen(clean=True)
    for sequence in range(2, 7):
        again = send(sequence)
        assert (again.duplicate, again.base_offset) == (True, first[sequence].base_offset)
    with pytest.raises(KafkaError, match="sequence 1 came, 7 was due"):
        send(1)
    assert send(0, pid=8).duplicate
    assert send(7).base_offset == 8
    store.reopen(clean=True)
    assert send(3).duplicate and send(7).duplicate


def test_kafkas_part_of_a_snapshot_comes_first(send: Any, store: Any) -> None:
    """Apache Kafka reads as many entries as are said, and the checksum of all that follows it."""
    for sequence in range(3):
        send(sequence)
    send(0, pid=8)
    data = encode_snapshot(store.log.producers.rows())
    _, crc, count = struct.unpack_from(">hIi", data)
    assert (crc, count) == (crc32c.crc32c(data[6:]), 2)
    entries = list(ROW.iter_unpack(data[10 : 10 + 2 * ROW.size]))
    assert sorted((entry[0], entry[2]) for entry in entries) == [(8, 0), (PID, 2)]
    assert data[10 + 2 * ROW.size :].startswith(MORE)
    assert encode_snapshot(decode_snapshot(data).rows()) == data


@pytest.mark.parametrize("cut", [1, 20, 28])
def test_what_is_behind_kafkas_part_has_to_be_whole(send: Any, store: Any, cut: int) -> None:
    for sequence in range(3):
        send(sequence)
    data = encode_snapshot(store.log.producers.rows())[:-cut]
    data = data[:2] + struct.pack(">I", crc32c.crc32c(data[6:])) + data[6:]
    with pytest.raises(ValueError, match="producer snapshot"):
        decode_snapshot(data)
    with pytest.raises(ValueError, match="nobody knows"):
        decode_snapshot(data[:2] + struct.pack(">I", crc32c.crc32c(data[6:56] + b"?")) + data[6:56] + b"?")


@pytest.mark.parametrize("data", [b"", b"\x00\x01", bytes(10), b"\x00\x02" + bytes(8)])
def test_no_snapshot(data: bytes) -> None:
    with pytest.raises(ValueError, match="producer snapshot"):
        decode_snapshot(data)
