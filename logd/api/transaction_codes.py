"""The coordinator's errors, as clients of older versions understand them."""

from __future__ import annotations

from kafka_client.errors import ErrorCode, KafkaError

ABORTABLE_FROM = 11
"""First version of Produce whose clients know TRANSACTION_ABORTABLE (KIP-890)."""
IMPLICIT_FROM = 12
"""First version of Produce that makes its partitions part of the transaction (KIP-890)."""

_WAIT = frozenset(
    (
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    )
)


def code_for(error: KafkaError, version: int, *, fenced_from: int) -> ErrorCode:
    """Return the error's code for this version of an API that has PRODUCER_FENCED from `fenced_from` on
    (KIP-588).
    """
    if error.code is ErrorCode.PRODUCER_FENCED and version < fenced_from:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error.code


def produce_code(error: KafkaError, version: int) -> ErrorCode:
    """Return the error's code for this version of Produce.

    Codes of `_WAIT` become NOT_ENOUGH_REPLICAS: producers retry that without asking for new metadata first.
    """
    code = error.code
    if code in _WAIT or (code is ErrorCode.CONCURRENT_TRANSACTIONS and version < IMPLICIT_FROM):
        return ErrorCode.NOT_ENOUGH_REPLICAS
    if code is ErrorCode.TRANSACTION_ABORTABLE and version < ABORTABLE_FROM:
        return ErrorCode.INVALID_TXN_STATE
    return code
