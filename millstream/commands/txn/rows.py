"""Transactions and their producers as rows, for `millstream txn` and kafka-transactions.

A number that is unknown is None. Each table's titles are those of Kafka's tool.
"""

from __future__ import annotations

from typing import Any

from kafka_client import Admin, Client, TopicPartition
from millstream.commands.txn.hanging import find_hanging
from millstream.terminal.output import Row

LISTED = {
    "transactional_id": "TransactionalId",
    "coordinator": "Coordinator",
    "producer_id": "ProducerId",
    "state": "TransactionState",
}
DESCRIBED = {
    "coordinator": "CoordinatorId",
    "transactional_id": "TransactionalId",
    "producer_id": "ProducerId",
    "producer_epoch": "ProducerEpoch",
    "state": "TransactionState",
    "timeout_ms": "TransactionTimeoutMs",
    "start_time_ms": "CurrentTransactionStartTimeMs",
    "duration_ms": "TransactionDurationMs",
    "partitions": "TopicPartitions",
}
PRODUCERS = {
    "producer_id": "ProducerId",
    "producer_epoch": "ProducerEpoch",
    "coordinator_epoch": "LatestCoordinatorEpoch",
    "last_sequence": "LastSequence",
    "last_timestamp_ms": "LastTimestamp",
    "transaction_start_offset": "CurrentTransactionStartOffset",
}
HANGING = {
    "topic": "Topic",
    "partition": "Partition",
    "producer_id": "ProducerId",
    "producer_epoch": "ProducerEpoch",
    "coordinator_epoch": "CoordinatorEpoch",
    "start_offset": "StartOffset",
    "last_timestamp_ms": "LastTimestamp",
    "duration_min": "Duration(min)",
}
MINUTE_MS = 60_000


async def listed_rows(admin: Admin, longer_than_ms: int, pattern: str | None) -> list[Row]:
    """Return a row for each transactional id that matches the pattern.

    `longer_than_ms` leaves out transactions that have not run longer. -1 leaves out none.
    """
    transactions = await admin.list_transactions(
        longer_than_ms=longer_than_ms, transactional_id_pattern=pattern
    )
    return [
        {
            "transactional_id": transaction.transactional_id,
            "coordinator": transaction.coordinator,
            "producer_id": transaction.producer_id,
            "state": transaction.state,
        }
        for transaction in transactions
    ]


async def described_row(admin: Admin, transactional_id: str, now_ms: int) -> dict[str, Any]:
    """Return the row of a transactional id, with the names of its partitions as a list.

    Raises KafkaError TRANSACTIONAL_ID_NOT_FOUND if there is no such id.
    """
    transaction = (await admin.describe_transactions([transactional_id]))[transactional_id]
    start_ms = None if transaction.start_time_ms < 0 else transaction.start_time_ms
    return {
        "coordinator": transaction.coordinator,
        "transactional_id": transaction.transactional_id,
        "producer_id": transaction.producer_id,
        "producer_epoch": transaction.producer_epoch,
        "state": transaction.state,
        "timeout_ms": transaction.timeout_ms,
        "start_time_ms": start_ms,
        "duration_ms": None if start_ms is None else now_ms - start_ms,
        "partitions": [str(tp) for tp in transaction.partitions],
    }


async def producer_rows(admin: Admin, tp: TopicPartition, broker: int | None) -> list[Row]:
    """Return a row for each producer that the partition knows, on its leader or on the given broker."""
    producers = (await admin.describe_producers([tp], node=broker))[tp]
    return [
        {
            "producer_id": producer.producer_id,
            "producer_epoch": producer.producer_epoch,
            "coordinator_epoch": producer.coordinator_epoch,
            "last_sequence": producer.last_sequence,
            "last_timestamp_ms": producer.last_timestamp_ms,
            "transaction_start_offset": (
                None if producer.transaction_start_offset < 0 else producer.transaction_start_offset
            ),
        }
        for producer in producers
    ]


async def hanging_rows(
    client: Client,
    *,
    topic: str | None,
    partition: int | None,
    broker_id: int | None,
    idle_minutes: int,
    now_ms: int,
) -> list[Row]:
    """Return a row for each hanging transaction that `find_hanging` finds."""
    transactions = await find_hanging(
        client,
        topic=topic,
        partition=partition,
        broker_id=broker_id,
        idle_ms=idle_minutes * MINUTE_MS,
        now_ms=now_ms,
    )
    return [
        {
            "topic": tp.topic,
            "partition": tp.partition,
            "producer_id": producer.producer_id,
            "producer_epoch": producer.producer_epoch,
            "coordinator_epoch": producer.coordinator_epoch,
            "start_offset": producer.transaction_start_offset,
            "last_timestamp_ms": producer.last_timestamp_ms,
            "duration_min": (now_ms - producer.last_timestamp_ms) // MINUTE_MS,
        }
        for tp, producer in transactions
    ]
