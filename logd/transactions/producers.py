"""Decisions about who may use a transactional id: a new producer fences the previous one.

Sources: KIP-98, KIP-360 (a producer that goes on after an error sends its identity), KIP-890. Each function
returns the transaction after the decision, or raises the KafkaError of the response.
"""

from __future__ import annotations

from collections.abc import Callable

from logd.transactions.ending import check_completed, prepared, producer_fenced
from logd.transactions.identity import ProducerIdentity
from logd.transactions.states import TransactionState
from logd.transactions.transaction import (
    EPOCH_BUMP_VERSION,
    EPOCH_MAX,
    NO_EPOCH,
    Transaction,
)


def first(transactional_id: str, timeout_ms: int, producer_id: int, now_ms: int) -> Transaction:
    """Return the first state of a new transactional id."""
    return Transaction(
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=0,
        previous_producer_id=producer_id,
        timeout_ms=timeout_ms,
        updated_ms=now_ms,
    )


def initialised(
    current: Transaction,
    timeout_ms: int,
    expected: ProducerIdentity | None,
    new_producer_id: Callable[[], int],
    now_ms: int,
) -> Transaction:
    """Return the transactional id with its next identity, or, if a transaction is open, its abort
    (PrepareAbort).

    After an abort the caller answers CONCURRENT_TRANSACTIONS, so that the producer sends its request again:
    its identity must be after that of the abort. Raises KafkaError(PRODUCER_FENCED) and
    KafkaError(CONCURRENT_TRANSACTIONS).
    """
    # Checked first: the producer may name the identity that it has once the transaction is complete.
    check_completed(current, expected or current.identity)
    if expected is not None and not _may_continue(current, expected):
        raise producer_fenced(current, expected)
    if current.state is TransactionState.ONGOING:
        return fenced(current, new_producer_id, now_ms)
    epoch, last_epoch, producer_id = current.producer_epoch, current.last_producer_epoch, current.producer_id
    if expected is not None and expected.epoch not in (epoch, last_epoch):
        raise producer_fenced(current, expected)
    if expected is None or expected.epoch == epoch:
        last_epoch = NO_EPOCH if expected is None else epoch
        if current.needs_new_producer_id:
            producer_id, epoch = new_producer_id(), 0
        else:
            epoch += 1
    # Otherwise the producer repeats a request whose response was lost: the identity stays the same.
    return current.become(
        TransactionState.EMPTY,
        producer_id=producer_id,
        producer_epoch=epoch,
        last_producer_epoch=last_epoch,
        may_be_behind=False,
        timeout_ms=timeout_ms,
        partitions=frozenset(),
        started_ms=-1,
        updated_ms=now_ms,
    )


def fenced(current: Transaction, new_producer_id: Callable[[], int], now_ms: int) -> Transaction:
    """Return the abort of an open transaction, with a raised epoch that fences its producer.

    If that producer later aborts too, with transaction version 2, it gets the raised epoch and may go on, as
    if its own abort had come first: no other client has that epoch.
    """
    return prepared(
        current.become(TransactionState.PREPARE_EPOCH_FENCE),
        commit=False,
        client_version=EPOCH_BUMP_VERSION,
        next_producer_id=new_producer_id if current.needs_new_producer_id else None,
        now_ms=now_ms,
    )


def _may_continue(current: Transaction, expected: ProducerIdentity) -> bool:
    """Return True if the identity has this id's producer id, or, in a repeated request, the previous one."""
    return expected.producer_id == current.producer_id or (
        expected.producer_id == current.previous_producer_id
        and (expected.epoch >= EPOCH_MAX - 1 or expected.epoch == current.last_producer_epoch)
    )
