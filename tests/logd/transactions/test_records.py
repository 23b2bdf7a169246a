"""The records of `__transaction_state`, against bytes written by Kafka 4.1's own classes."""

from __future__ import annotations

import pytest

from kafka_client.errors import MalformedMessage
from kafka_client.topic_partition import TopicPartition
from logd.transactions import (
    Transaction,
    TransactionRecord,
    TransactionState,
    decode_record,
    encode_record,
)

KEY = bytes.fromhex("000000096f72646572732dc3a9")

ONGOING = Transaction(
    transactional_id="orders-é",
    producer_id=4_000_000_001,
    producer_epoch=7,
    previous_producer_id=4_000_000_001,
    timeout_ms=60_000,
    state=TransactionState.ONGOING,
    partitions=frozenset(
        (TopicPartition("t", 0), TopicPartition("t", 2), TopicPartition("__consumer_offsets", 3))
    ),
    started_ms=1_700_000_000_001,
    updated_ms=1_700_000_000_123,
    client_version=2,
)
ROTATING = Transaction(
    transactional_id="orders-é",
    producer_id=4_000_000_001,
    producer_epoch=32_767,
    previous_producer_id=4_000_000_001,
    next_producer_id=4_000_000_002,
    timeout_ms=60_000,
    state=TransactionState.PREPARE_COMMIT,
    partitions=ONGOING.partitions,
    started_ms=1_700_000_000_001,
    updated_ms=1_700_000_000_123,
    client_version=2,
)
EMPTY = Transaction(
    transactional_id="orders-é",
    producer_id=5,
    producer_epoch=0,
    previous_producer_id=5,
    timeout_ms=1,
    updated_ms=1,
)
WRITTEN = [
    (
        ONGOING,
        "000100000000ee6b280100070000ea600103135f5f636f6e73756d65725f6f66667365747302000000030002740300000000000000"
        "02000000018bcfe5687b0000018bcfe5680102000800000000ee6b280102020002",
    ),
    (
        ROTATING,
        "000100000000ee6b28017fff0000ea600203135f5f636f6e73756d65725f6f66667365747302000000030002740300000000000000"
        "02000000018bcfe5687b0000018bcfe5680103000800000000ee6b2801010800000000ee6b280202020002",
    ),
    (
        EMPTY,
        "0001000000000000000500000000000100000000000000000001ffffffffffffffff0100080000000000000005",
    ),
]


@pytest.mark.parametrize(("transaction", "value"), WRITTEN, ids=["ongoing", "rotating", "empty"])
def test_bytes_are_kafkas(transaction: Transaction, value: str) -> None:
    record = TransactionRecord("orders-é", transaction)
    assert encode_record(record) == (KEY, bytes.fromhex(value))
    assert decode_record(KEY, bytes.fromhex(value)) == record


def test_version_0_is_read() -> None:
    value = bytes.fromhex("00000000000000000005000300000001040000000000000000000000010000000000000002")
    record = decode_record(KEY, value)
    assert record is not None and record.transaction is not None
    assert record.transaction.identity == (5, 3)
    assert record.transaction.state is TransactionState.COMPLETE_COMMIT
    assert (record.transaction.updated_ms, record.transaction.started_ms) == (1, 2)


def test_the_epoch_of_two_phase_commit_is_passed_over() -> None:
    value = bytes.fromhex(
        "000100000000ee6b280100070000ea600103135f5f636f6e73756d65725f6f66667365747302000000030002740300000000000000"
        "02000000018bcfe5687b0000018bcfe5680103000800000000ee6b28010202000203020009"
    )
    assert decode_record(KEY, value) == TransactionRecord("orders-é", ONGOING)


def test_a_tombstone_forgets() -> None:
    assert encode_record(TransactionRecord("orders-é", None)) == (KEY, None)
    assert decode_record(KEY, None) == TransactionRecord("orders-é", None)


def test_other_kinds_are_skipped() -> None:
    assert decode_record(b"\x00\x01\x00\x01x", b"\x00\x00") is None


def test_an_unknown_state_is_malformed() -> None:
    value = bytearray.fromhex(WRITTEN[2][1])
    value[16] = 99
    with pytest.raises(MalformedMessage, match="state 99"):
        decode_record(KEY, bytes(value))
