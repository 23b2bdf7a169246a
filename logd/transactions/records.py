"""The records of `__transaction_state`, in Kafka's format.

A record's key and value each begin with a version, then the message in that version:

    key    | int16: 0 = TransactionLogKey    | message |
    value  | int16: version of the value     | message |       (no value: a tombstone)

Values are written in version 1, as Kafka 4 writes them where `transaction.version` is 1 or more; both
versions are read. Keys of other kinds are skipped when read.
"""

from __future__ import annotations

from itertools import groupby
from typing import Annotated, ClassVar, Final, NamedTuple

from kafka_client.errors import MalformedMessage
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire import decode_versioned, encode_versioned
from kafka_client.wire.message import NEVER, Int8, Int16, Int32, Int64, Message, String, V
from logd.transactions.states import TransactionState
from logd.transactions.transaction import Transaction

TRANSACTION_TOPIC: Final = "__transaction_state"
_KEY: Final = 0
_VALUE: Final = 1


class TransactionLogKey(Message):
    """The key of a transactional id's record."""

    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = NEVER

    transactional_id: String = ""


class PartitionsSchema(Message):
    """The partitions of one topic in a TransactionLogValue."""

    topic: String = ""
    partition_ids: list[Int32] = []


class TransactionLogValue(Message):
    """The state of a transactional id. `next_producer_epoch` is part of KIP-939 and not used here."""

    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE: ClassVar[int] = 1

    producer_id: Int64 = 0
    previous_producer_id: Annotated[Int64, V(1, tag=0)] = -1
    next_producer_id: Annotated[Int64, V(1, tag=1)] = -1
    producer_epoch: Int16 = 0
    next_producer_epoch: Annotated[Int16, V(1, tag=3)] = -1
    transaction_timeout_ms: Int32 = 0
    transaction_status: Int8 = 0
    transaction_partitions: list[PartitionsSchema] | None = []
    transaction_last_update_timestamp_ms: Int64 = 0
    transaction_start_timestamp_ms: Int64 = 0
    client_transaction_version: Annotated[Int16, V(1, tag=2)] = 0


class TransactionRecord(NamedTuple):
    """A transactional id as it is in the log. `transaction` is None for a tombstone."""

    transactional_id: str
    transaction: Transaction | None


def encode_record(record: TransactionRecord) -> tuple[bytes, bytes | None]:
    """Return key and value as they are in the log; raises ValueError if a text is too long for the format."""
    key = encode_versioned(TransactionLogKey(transactional_id=record.transactional_id), _KEY)
    transaction = record.transaction
    return key, None if transaction is None else encode_versioned(_value(transaction), _VALUE)


def decode_record(key: bytes, value: bytes | None) -> TransactionRecord | None:
    """Return the record of a key and a value; None for an unknown kind of key.

    Raises MalformedMessage for bytes that do not match their version.
    """
    if int.from_bytes(key[:2], "big", signed=True) != _KEY:
        return None
    transactional_id = decode_versioned(TransactionLogKey, key).transactional_id
    if value is None:
        return TransactionRecord(transactional_id, None)
    return TransactionRecord(
        transactional_id, _transaction(transactional_id, decode_versioned(TransactionLogValue, value))
    )


def _value(transaction: Transaction) -> TransactionLogValue:
    partitions = None
    if transaction.state is not TransactionState.EMPTY:
        partitions = [
            PartitionsSchema(topic=topic, partition_ids=[index for _, index in members])
            for topic, members in groupby(sorted(transaction.partitions), lambda where: where.topic)
        ]
    return TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        transaction_partitions=partitions,
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.started_ms,
        client_transaction_version=transaction.client_version,
    )


def _transaction(transactional_id: str, value: TransactionLogValue) -> Transaction:
    try:
        state = TransactionState(value.transaction_status)
    except ValueError:
        raise MalformedMessage(f"a transaction in state {value.transaction_status}") from None
    partitions = frozenset(
        TopicPartition(some.topic, index)
        for some in value.transaction_partitions or ()
        for index in some.partition_ids
    )
    return Transaction(
        transactional_id=transactional_id,
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        timeout_ms=value.transaction_timeout_ms,
        state=state,
        partitions=partitions,
        started_ms=value.transaction_start_timestamp_ms,
        updated_ms=value.transaction_last_update_timestamp_ms,
        client_version=value.client_transaction_version,
    )
