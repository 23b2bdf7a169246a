"""Appends of transactional producers to a partition: the guard's consent, markers, timestamps, readers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kafka_client.errors import ErrorCode, KafkaError, error_for
from kafka_client.records import Codec, build_batch, build_end_marker, decode_records, read_header
from logd.broker.partition.admission import NotYetAdmitted
from logd.broker.partition.batch_rules import BatchRules
from logd.broker.partition.partition import Partition
from logd.config.topic import TopicConfig
from logd.storage import LogDirectory
from logd.storage.disk import read_slice

NOW = 1_700_000_000_000
PID = 77


class Guard:
    """A guard that records its calls, and refuses with `code` if that is set."""

    def __init__(self) -> None:
        self.admissions: list[tuple[Any, ...]] = []
        self.code: ErrorCode | None = None
        self.asks_elsewhere = False

    def admit(self, *question: Any, implicit: bool) -> None:
        self.admissions.append((*question, implicit))
        if self.asks_elsewhere:
            raise NotYetAdmitted(cast(Any, None))
        if self.code is not None:
            raise error_for(self.code, "not you")


@pytest.fixture
def guard() -> Guard:
    return Guard()


@pytest.fixture
def partition(tmp_path: Path, guard: Guard) -> Iterator[Partition]:
    config = TopicConfig()
    path = tmp_path / "data"
    folder = LogDirectory.open(path, node_id=1, cluster_id="c", config_for=lambda topic: config, now_ms=NOW)
    log = folder.create_log("t", 0, topic_id=bytes(range(16)), config=config, now_ms=NOW)
    flusher = cast(Any, SimpleNamespace(appended=lambda *_: None, touched=lambda *_: None))
    partition = Partition(log, folder, bytes(range(16)), config, flusher)
    partition.guard = guard
    yield partition
    folder.close()


def transactional(sequence: int = 0, *, epoch: int = 0, pid: int = PID, **facts: Any) -> memoryview:
    return memoryview(
        build_batch(
            [(NOW, b"k", b"v", ())],
            producer_id=pid,
            producer_epoch=epoch,
            base_sequence=sequence,
            **{"transactional": True, **facts},
        )
    )


def refusal(partition: Partition, batch: memoryview, **facts: Any) -> ErrorCode:
    end = partition.high_watermark
    with pytest.raises(KafkaError) as caught:
        partition.produce(batch, NOW, -1, **{"transactional_id": "id", **facts})
    assert partition.high_watermark == end, "nothing was written"
    return caught.value.code


def test_the_guard_is_asked_once_a_transaction(partition: Partition, guard: Guard) -> None:
    partition.produce(transactional(0), NOW, -1, transactional_id="id")
    partition.produce(transactional(1), NOW, -1, transactional_id="id")
    assert guard.admissions == [("id", PID, 0, "t", 0, False)]
    assert partition.has_open_transaction(PID)
    partition.append_marker(PID, 0, True, 0, NOW)
    assert not partition.has_open_transaction(PID)
    partition.produce(transactional(2), NOW, -1, transactional_id="id", implicit=True)
    assert guard.admissions[1:] == [("id", PID, 0, "t", 0, True)]


def test_another_epoch_is_another_transaction_to_the_guard(partition: Partition, guard: Guard) -> None:
    """Guards are asked again for another producer epoch.

    A transaction left open by the last instance does not admit the next instance (KIP-890).
    """
    partition.produce(transactional(0), NOW, -1, transactional_id="id")
    guard.code = ErrorCode.INVALID_TXN_STATE
    assert refusal(partition, transactional(0, epoch=1)) is ErrorCode.INVALID_TXN_STATE
    partition.produce(transactional(1), NOW, -1, transactional_id="id")


def test_a_batch_sent_again_after_the_end_is_a_duplicate(partition: Partition, guard: Guard) -> None:
    first = partition.produce(transactional(0), NOW, -1, transactional_id="id")
    partition.append_marker(PID, 0, True, 0, NOW)
    guard.code = ErrorCode.INVALID_TXN_STATE
    assert partition.produce(transactional(0), NOW, -1, transactional_id="id") == first._replace(
        duplicate=True
    )
    assert refusal(partition, transactional(1)) is ErrorCode.INVALID_TXN_STATE


def test_batches_behind_a_refused_one_are_refused_until_it_comes_again(
    partition: Partition, guard: Guard
) -> None:
    """Batches after a refused one are refused until it comes again: otherwise the refused batch would be
    lost.
    """
    guard.code = ErrorCode.CONCURRENT_TRANSACTIONS
    assert refusal(partition, transactional(40)) is ErrorCode.CONCURRENT_TRANSACTIONS
    guard.code = None
    assert refusal(partition, transactional(41)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    partition.produce(transactional(40), NOW, -1, transactional_id="id")
    partition.produce(transactional(41), NOW, -1, transactional_id="id")
    guard.code = ErrorCode.CONCURRENT_TRANSACTIONS
    assert refusal(partition, transactional(7, pid=8)) is ErrorCode.CONCURRENT_TRANSACTIONS
    guard.code = None
    partition.produce(transactional(9, pid=8, epoch=1), NOW, -1, transactional_id="id")


def test_a_refused_batch_that_another_leader_took_is_not_missing(partition: Partition, guard: Guard) -> None:
    """Refused batches that another leader appended are not missing after this broker has copied them."""
    partition.produce(transactional(39), NOW, -1, transactional_id="id")
    partition.append_marker(PID, 0, True, 0, NOW)
    guard.code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert refusal(partition, transactional(40)) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    guard.code = None
    # As a follower's copy comes to the log, past the guard.
    partition.log.writer.append(transactional(40), 1, NOW)
    partition.append_marker(PID, 0, True, 0, NOW)
    assert refusal(partition, transactional(42)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    partition.produce(transactional(41), NOW, -1, transactional_id="id")
    partition.produce(transactional(42), NOW, -1, transactional_id="id")


@pytest.mark.parametrize("acks", [-1, 0])
def test_nothing_is_written_while_another_broker_is_asked(
    partition: Partition, guard: Guard, acks: int
) -> None:
    """Batches wait while another broker is asked; its refusal also refuses the batches sent after them."""
    guard.asks_elsewhere = True
    with pytest.raises(NotYetAdmitted):
        partition.produce(transactional(40), NOW, acks, transactional_id="id")
    assert partition.log_end_offset == 0
    guard.asks_elsewhere, guard.code = False, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert refusal(partition, transactional(40)) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    guard.code = None
    assert refusal(partition, transactional(41)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_with_epoch_bumps_an_unknown_producer_begins_at_zero(partition: Partition, guard: Guard) -> None:
    code = refusal(partition, transactional(5), implicit=True)
    assert code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and guard.admissions == []
    partition.produce(transactional(0), NOW, -1, transactional_id="id", implicit=True)


@pytest.mark.parametrize(
    "batch",
    [
        transactional(pid=-1),
        transactional(epoch=-1),
        transactional(sequence=-1),
        transactional(control=True),
        memoryview(
            build_end_marker(1, timestamp_ms=NOW, producer_id=1, producer_epoch=0, coordinator_epoch=0)
        ),
    ],
    ids=["no producer id", "no epoch", "no sequence", "control", "marker"],
)
def test_what_no_client_may_write(partition: Partition, guard: Guard, batch: memoryview) -> None:
    assert refusal(partition, batch) is ErrorCode.INVALID_RECORD
    assert guard.admissions == []


def test_a_topics_codec_keeps_the_transaction(partition: Partition) -> None:
    partition.configure(TopicConfig(compression_type="gzip"))
    partition.produce(transactional(0), NOW, -1, transactional_id="id")
    piece = partition.read(0, 1000)
    assert piece is not None
    header = read_header(read_slice(piece))
    assert (header.codec, header.is_transactional, header.producer_id) == (Codec.GZIP, True, PID)


def test_readers_of_committed_records_stop_at_the_last_stable_offset(partition: Partition) -> None:
    partition.append(build_batch([(NOW, b"k", b"v", ())]), NOW)
    assert partition.last_stable_offset == 1
    partition.produce(transactional(0), NOW, -1, transactional_id="id")
    partition.append(build_batch([(NOW, b"k", b"v", ())]), NOW)
    assert (partition.last_stable_offset, partition.high_watermark) == (1, 3)
    piece = partition.read(0, 1000, committed=True)
    assert piece is not None and [record[0] for record in decode_records(read_slice(piece))] == [0]
    assert partition.read(1, 1000, committed=True) is None
    partition.append_marker(PID, 0, False, 3, NOW)
    assert partition.last_stable_offset == partition.high_watermark == 4
    assert partition.aborted(0, 4) == [(PID, 1, 3, 4)]
    ((pid, producer),) = partition.producers
    facts = (pid, producer.epoch, producer.last_sequence, producer.coordinator_epoch)
    assert facts == (PID, 0, 0, 3) and producer.txn_first_offset == -1


class Waiter:
    """See `AppendWaiter`."""

    appends = 0

    def on_append(self) -> None:
        self.appends += 1


def test_a_marker_wakes_those_who_wait(partition: Partition) -> None:
    waiter = Waiter()
    partition.waiters.add(waiter)
    partition.append_marker(PID, 0, True, 0, NOW)
    assert waiter.appends == 1
    partition.append_marker(PID, 0, True, 0, NOW)
    assert waiter.appends == 1, "who is told has to come again for more"


def test_a_partition_opened_again_has_nothing_unstable_that_has_ended(partition: Partition) -> None:
    partition.produce(transactional(0), NOW, -1, transactional_id="id")
    partition.append_marker(PID, 0, True, 0, NOW)
    partition.produce(transactional(0, pid=5), NOW, -1, transactional_id="id")
    partition.directory._lock.release()
    config = partition.config
    folder = LogDirectory.open(
        partition.directory.path, node_id=1, cluster_id="c", config_for=lambda topic: config, now_ms=NOW
    )
    flusher = cast(Any, SimpleNamespace(appended=lambda *_: None, touched=lambda *_: None))
    again = Partition(folder.logs["t", 0], folder, bytes(16), config, flusher)
    assert again.last_stable_offset == 2
    again.append_marker(5, 0, True, 0, NOW)
    assert again.last_stable_offset == 4
    folder.close()


# Timestamps


def times(*timestamps: int, codec: Codec = Codec.NONE) -> memoryview:
    return memoryview(build_batch([(time, b"k", b"v", ()) for time in timestamps], codec=codec))


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
@pytest.mark.parametrize(
    ("timestamps", "is_taken"),
    [
        ((NOW, NOW - 1000), True),
        ((NOW, NOW - 1001), False),
        ((NOW, NOW - 1001, NOW), False),
        ((NOW - 1001,), False),
        ((-1, NOW), True),
        ((-1,), True),
        ((NOW + 500,), True),
        ((NOW, NOW + 501), False),
    ],
)
def test_every_records_time_is_looked_at(timestamps: tuple[int, ...], is_taken: bool, codec: Codec) -> None:
    config = TopicConfig(message_timestamp_before_max_ms=1000, message_timestamp_after_max_ms=500)
    batch = times(*timestamps, codec=codec)
    rules = BatchRules("t-0", config)
    if is_taken:
        assert rules.admit(read_header(batch), batch, NOW)[1] is batch
    else:
        with pytest.raises(KafkaError) as caught:
            rules.admit(read_header(batch), batch, NOW)
        assert caught.value.code is ErrorCode.INVALID_TIMESTAMP


def test_times_do_not_matter_where_the_broker_sets_them() -> None:
    config = TopicConfig(message_timestamp_before_max_ms=1000, message_timestamp_type="LogAppendTime")
    batch = times(NOW - 5000, NOW + 10**9)
    assert BatchRules("t-0", config).admit(read_header(batch), batch, NOW)[1] is batch
