"""The coordinator's log over a partition."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from struct import Struct
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.records import build_batch, decode_records
from logd.broker.transactions.log import TxnLog
from logd.transactions import Transaction, TransactionRecord, encode_record


def record(transactional_id: str, producer_id: int = 1) -> TransactionRecord:
    return TransactionRecord(
        transactional_id,
        Transaction(
            transactional_id=transactional_id,
            producer_id=producer_id,
            producer_epoch=0,
            timeout_ms=1,
            updated_ms=0,
        ),
    )


LEADER_EPOCH = Struct(">i")
LEADER_EPOCH_POSITION = 12


class PaperPartition:
    """A partition that holds `batches`. Appending raises `failure` if there is one."""

    log_start_offset = 0
    leader_epoch = 4
    is_leased = True

    def __init__(self) -> None:
        self.batches: list[bytes] = []
        self.failure: KafkaError | None = None
        self.max_message_bytes = 1_000

    def __str__(self) -> str:
        return "__transaction_state-0"

    @property
    def log_end_offset(self) -> int:
        return len(self.batches)

    def append(self, batch: bytes, now_ms: int) -> Any:
        if self.failure is not None:
            raise self.failure
        stamped = bytearray(batch)
        LEADER_EPOCH.pack_into(stamped, LEADER_EPOCH_POSITION, self.leader_epoch)
        self.batches.append(bytes(stamped))
        return SimpleNamespace(base_offset=len(self.batches) - 1)

    def read_all(self) -> Iterator[memoryview]:
        return map(memoryview, self.batches)


@pytest.fixture
def partition() -> PaperPartition:
    return PaperPartition()


@pytest.fixture
def log(partition: PaperPartition) -> TxnLog:
    paper: Any = partition
    return TxnLog(paper, lambda: 5)


def test_records_come_back_in_order(log: TxnLog, partition: PaperPartition) -> None:
    assert log.is_empty
    log.append([record("a"), record("b")])
    log.append([TransactionRecord("a", None)])
    assert not log.is_empty
    stored = [record("a"), record("b"), TransactionRecord("a", None)]
    assert [each for _, each in log.read()] == stored
    assert [timestamp for _, timestamp, *_ in decode_records(partition.batches[0])] == [5, 5]


def test_a_record_that_cannot_be_read_is_left_out(
    log: TxnLog, partition: PaperPartition, caplog: pytest.LogCaptureFixture
) -> None:
    key, value = encode_record(record("a"))
    assert value is not None
    unreadable = [(0, key, value[:-3], ()), (0, None, value, ()), (0, b"\0\7later", value, ())]
    partition.append(build_batch([*unreadable, (0, *encode_record(record("b")), ())]), 5)
    with caplog.at_level(logging.WARNING):
        assert [each for _, each in log.read()] == [record("b")]
    assert "__transaction_state-0, offset 0 cannot be read" in caplog.text


def test_what_was_written_before_an_unclean_stop_may_lack_what_came_after(
    log: TxnLog, partition: PaperPartition
) -> None:
    log.append([record("a")])
    log.append([TransactionRecord("c", None)])
    partition.leader_epoch += 1
    assert log.leader_epoch == 4, "its markers are those of its own term"
    log = TxnLog(partition, lambda: 5)  # type: ignore[arg-type]
    log.append([record("b")])
    transactions = {read.transactional_id: read.transaction for _, read in log.read()}
    assert transactions["a"] is not None and transactions["a"].may_be_behind
    assert transactions["b"] is not None and not transactions["b"].may_be_behind
    assert transactions["c"] is None


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ],
)
def test_what_a_producer_is_told(
    log: TxnLog, partition: PaperPartition, failure: ErrorCode, expected: ErrorCode
) -> None:
    partition.failure = KafkaError(failure)
    with pytest.raises(KafkaError) as caught:
        log.append([record("a")])
    assert caught.value.code is expected


def test_what_does_not_fit(log: TxnLog, partition: PaperPartition) -> None:
    with pytest.raises(KafkaError) as caught:
        log.append([record("a" * 1_000)])
    assert caught.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
    with pytest.raises(KafkaError) as caught:
        log.append([record("a" * 40_000)])
    assert caught.value.code is ErrorCode.INVALID_REQUEST
    assert partition.batches == []
