"""Decisions about the end of a transaction: commit, abort, and their completion.

Up to transaction version 1 a transaction ends under the epoch that it was written with. From version 2 on
(KIP-890) it ends under the next epoch, which the producer then uses. So no late batch can become part of the
next transaction. A repeated EndTxn is recognised by the previous epoch:

                    abort                commit
                    repeated   current   repeated   current
    Empty           fenced     aborts    fenced     INVALID_TXN_STATE
    CompleteAbort   as before  aborts    INVALID_TXN_STATE
    CompleteCommit  INVALID…   aborts    as before  INVALID_TXN_STATE
    PrepareAbort    CONCURRENT_TRANSACTIONS for any identity
    PrepareCommit   CONCURRENT_TRANSACTIONS for any identity

While markers are being written, the producer already has its next identity. The coordinator only takes it
over when the transaction is complete. So the producer is told to wait before its identity is checked. Up to
version 1 the identity stays the same and is checked first, as in Apache Kafka.

A transaction without partitions can be aborted, because a producer's first batch may not have arrived yet.
"""

from __future__ import annotations

from collections.abc import Callable

from kafka_client.errors import ErrorCode, KafkaError, error_for
from logd.transactions.identity import ProducerIdentity
from logd.transactions.states import PREPARED, TransactionState
from logd.transactions.transaction import (
    EPOCH_BUMP_VERSION,
    EPOCH_MAX,
    NO_PRODUCER_ID,
    Transaction,
)

_COMMITTING = frozenset((TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT))


def ended(
    current: Transaction,
    identity: ProducerIdentity,
    *,
    commit: bool,
    client_version: int,
    new_producer_id: Callable[[], int],
    now_ms: int,
) -> Transaction | None:
    """Return the transaction that EndTxn leads to (prepared); None if the request was repeated and everything
    is done.

    Raises KafkaError(INVALID_PRODUCER_ID_MAPPING), (PRODUCER_FENCED), (CONCURRENT_TRANSACTIONS) and
    (INVALID_TXN_STATE).
    """
    bumps = client_version >= EPOCH_BUMP_VERSION
    if bumps:
        check_completed(current, identity)
    repeated = bumps and _is_repeated(current, identity)
    _check_identity(current, identity, bumps=bumps, repeated=repeated)
    check_completed(current, identity)
    state = current.state
    if state is TransactionState.ONGOING or _is_empty_abort(current, commit, bumps, repeated):
        rotates = bumps and current.is_epoch_exhausted
        return prepared(
            current,
            commit=commit,
            client_version=client_version if bumps else 0,
            next_producer_id=new_producer_id if rotates else None,
            now_ms=now_ms,
        )
    if state is TransactionState.EMPTY or (state in _COMMITTING) is not commit:
        raise _wrong_state(current, commit)
    if bumps and not repeated:
        raise _wrong_state(current, commit)
    return None


def prepared(
    current: Transaction,
    *,
    commit: bool,
    client_version: int,
    next_producer_id: Callable[[], int] | None,
    now_ms: int,
) -> Transaction:
    """Return the transaction with its outcome decided; `next_producer_id` returns the producer's next id."""
    bumps = client_version >= EPOCH_BUMP_VERSION
    epoch = current.producer_epoch
    return current.become(
        TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT,
        producer_epoch=min(epoch + 1, EPOCH_MAX) if bumps else epoch,
        last_producer_epoch=epoch if bumps else current.last_producer_epoch,
        next_producer_id=NO_PRODUCER_ID if next_producer_id is None else next_producer_id(),
        # Without partitions there is no start time yet.
        started_ms=current.started_ms if current.partitions else now_ms,
        updated_ms=now_ms,
        client_version=client_version,
    )


def completed(current: Transaction, now_ms: int) -> Transaction:
    """Return the completed transaction, after every partition has its marker."""
    committed = current.state is TransactionState.PREPARE_COMMIT
    producer_id, epoch = identity_after(current)
    return current.become(
        TransactionState.COMPLETE_COMMIT if committed else TransactionState.COMPLETE_ABORT,
        producer_id=producer_id,
        producer_epoch=epoch,
        next_producer_id=NO_PRODUCER_ID,
        may_be_behind=current.may_be_behind and producer_id == current.producer_id,
        partitions=frozenset(),
        updated_ms=now_ms,
    )


def identity_after(current: Transaction) -> ProducerIdentity:
    """Return the identity of the producer's next transaction, once this one is complete."""
    if current.bumps_epoch and current.next_producer_id != NO_PRODUCER_ID:
        return ProducerIdentity(current.next_producer_id, 0)
    return current.identity


def _is_repeated(current: Transaction, identity: ProducerIdentity) -> bool:
    """Return True if the identity is the previous one of a transaction that has already ended."""
    if identity.producer_id == current.producer_id:
        return identity.epoch + 1 == current.producer_epoch
    return (
        identity.producer_id == current.previous_producer_id
        and identity.epoch == EPOCH_MAX - 1
        and current.producer_epoch == 0
    )


def check_completed(current: Transaction, identity: ProducerIdentity) -> None:
    """Raise KafkaError(CONCURRENT_TRANSACTIONS) if markers are being written: `identity` has to wait."""
    if current.state in PREPARED:
        raise KafkaError(
            ErrorCode.CONCURRENT_TRANSACTIONS,
            f"{current.transactional_id} is still being completed: "
            f"producer {identity.producer_id} epoch {identity.epoch} has to ask again",
        )


def _check_identity(current: Transaction, identity: ProducerIdentity, *, bumps: bool, repeated: bool) -> None:
    if identity.producer_id != current.producer_id and not repeated:
        raise unknown_producer(current.transactional_id, identity)
    same = identity.epoch == current.producer_epoch
    if not bumps or current.state in (TransactionState.ONGOING, TransactionState.EMPTY):
        valid = same and identity.producer_id == current.producer_id
    else:
        valid = same or repeated
    if not valid:
        raise producer_fenced(current, identity)


def _is_empty_abort(current: Transaction, commit: bool, bumps: bool, repeated: bool) -> bool:
    return bumps and not commit and not repeated


def unknown_producer(transactional_id: str, identity: ProducerIdentity) -> KafkaError:
    """Return the error for a producer id that does not belong to the transactional id."""
    return KafkaError(
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        f"{transactional_id} does not belong to producer {identity.producer_id}",
    )


def producer_fenced(current: Transaction, identity: ProducerIdentity) -> KafkaError:
    """Return the error for an identity that was replaced by another one."""
    return error_for(
        ErrorCode.PRODUCER_FENCED,
        f"{current.transactional_id} is at producer {current.producer_id} epoch {current.producer_epoch}, "
        f"not {identity.producer_id} epoch {identity.epoch}",
    )


def _wrong_state(current: Transaction, commit: bool) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_TXN_STATE,
        f"{current.transactional_id} is in state {current.state.title} and cannot be "
        f"{'committed' if commit else 'aborted'}",
    )
