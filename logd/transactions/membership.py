"""Decisions about which partitions take part in a transaction (KIP-98, verification KIP-890)."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kafka_client.errors import ErrorCode
from kafka_client.topic_partition import TopicPartition
from logd.transactions.ending import check_completed, producer_fenced, unknown_producer
from logd.transactions.identity import ProducerIdentity
from logd.transactions.states import TransactionState
from logd.transactions.transaction import Transaction


def added(
    current: Transaction,
    identity: ProducerIdentity,
    partitions: Collection[TopicPartition],
    *,
    client_version: int,
    now_ms: int,
) -> Transaction | None:
    """Return the transaction with ``partitions`` added, started if there was none; None if it has them
    already.

    Raises KafkaError: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS.
    """
    # Checked first: with transaction version 2 the producer may already have the id of its next transaction.
    check_completed(current, identity)
    _check_identity(current, identity)
    ongoing = current.state is TransactionState.ONGOING
    if ongoing and current.partitions.issuperset(partitions):
        return None
    return current.become(
        TransactionState.ONGOING,
        partitions=current.partitions | frozenset(partitions),
        started_ms=current.started_ms if ongoing else now_ms,
        updated_ms=now_ms,
        client_version=client_version,
    )


def verified(
    current: Transaction, identity: ProducerIdentity, partitions: Collection[TopicPartition]
) -> Mapping[TopicPartition, ErrorCode]:
    """Return NONE for each partition in the producer's transaction, TRANSACTION_ABORTABLE for each other one.

    Raises KafkaError as `added` does. It checks the identity first, as Apache Kafka does: producers that only
    verify have a transaction version under which their identity does not change.
    """
    _check_identity(current, identity)
    check_completed(current, identity)
    return {
        partition: ErrorCode.NONE if partition in current.partitions else ErrorCode.TRANSACTION_ABORTABLE
        for partition in partitions
    }


def _check_identity(current: Transaction, identity: ProducerIdentity) -> None:
    if identity.producer_id != current.producer_id:
        raise unknown_producer(current.transactional_id, identity)
    if identity.epoch != current.producer_epoch:
        raise producer_fenced(current, identity)
