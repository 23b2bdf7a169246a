"""The meaning of a broker's error code for a transaction, by API: retry, abort, or stop.

The tables are those of Apache Kafka's TransactionManager (KIP-98, KIP-360, KIP-447, KIP-588, KIP-890,
KIP-1050). Codes for which `error_for` returns a `RetriableError` are retried in every API.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka_client.cluster.cluster import is_retriable
from kafka_client.errors import (
    AbortableTransactionError,
    ConnectionClosed,
    ErrorCode,
    FatalTransactionError,
    KafkaError,
    MillstreamError,
    ProducerFenced,
    RequestTimedOut,
    RetriableError,
    TransactionError,
    TransactionRebalanced,
    error_for,
)

_FENCED = frozenset((ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED))


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The error codes of one API; all that are in no set are `otherwise`."""

    api: str
    abortable: frozenset[ErrorCode] = frozenset()
    fatal: frozenset[ErrorCode] = frozenset()
    fenced: frozenset[ErrorCode] = _FENCED
    rebalanced: frozenset[ErrorCode] = frozenset()
    otherwise: type[TransactionError] = FatalTransactionError

    def error(self, code: int, about: str) -> KafkaError:
        """Return the exception for a code from the wire: a RetriableError or a TransactionError."""
        error = error_for(code, f"{self.api}: {about}")
        return error if isinstance(error, RetriableError) else self.verdict(error)

    def verdict(self, error: MillstreamError) -> TransactionError:
        """Return the error, which is not retried, as the TransactionError that says what to do."""
        if isinstance(error, TransactionError):
            return error
        return as_transaction_error(self._kind(_code(error)), error)

    def _kind(self, code: ErrorCode) -> type[TransactionError]:
        if code in self.fenced:
            return ProducerFenced
        if code in self.rebalanced:
            return TransactionRebalanced
        if code in self.abortable:
            return AbortableTransactionError
        if code in self.fatal:
            return FatalTransactionError
        return self.otherwise


def as_transaction_error(kind: type[TransactionError], error: MillstreamError) -> TransactionError:
    """Return the same error as an exception of class `kind`, with `error` as its cause."""
    verdict = kind(_code(error), error.message if isinstance(error, KafkaError) else str(error))
    verdict.__cause__ = error
    return verdict


def _code(error: MillstreamError) -> ErrorCode:
    if isinstance(error, KafkaError):
        return error.code
    if isinstance(error, RequestTimedOut):
        return ErrorCode.REQUEST_TIMED_OUT
    if isinstance(error, ConnectionClosed):
        return ErrorCode.NETWORK_EXCEPTION
    return ErrorCode.UNKNOWN_SERVER_ERROR


FIND = Answers(
    api="FindCoordinator",
    abortable=frozenset((ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.TRANSACTION_ABORTABLE)),
)
INIT = Answers(api="InitProducerId", abortable=frozenset((ErrorCode.TRANSACTION_ABORTABLE,)))
ADD_PARTITIONS = Answers(
    api="AddPartitionsToTxn",
    fatal=frozenset(
        (
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            ErrorCode.INVALID_TXN_STATE,
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            ErrorCode.UNSUPPORTED_VERSION,
        )
    ),
    otherwise=AbortableTransactionError,
)
ADD_OFFSETS = Answers(
    api="AddOffsetsToTxn",
    abortable=frozenset(
        (
            ErrorCode.UNKNOWN_PRODUCER_ID,
            ErrorCode.GROUP_AUTHORIZATION_FAILED,
            ErrorCode.TRANSACTION_ABORTABLE,
        )
    ),
)
COMMIT_OFFSETS = Answers(
    api="TxnOffsetCommit",
    abortable=frozenset(
        (
            ErrorCode.GROUP_AUTHORIZATION_FAILED,
            ErrorCode.FENCED_INSTANCE_ID,
            ErrorCode.TRANSACTION_ABORTABLE,
        )
    ),
    rebalanced=frozenset(
        (
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.ILLEGAL_GENERATION,
            ErrorCode.GROUP_ID_NOT_FOUND,
            ErrorCode.STALE_MEMBER_EPOCH,
        )
    ),
)
END = Answers(
    api="EndTxn", abortable=frozenset((ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.TRANSACTION_ABORTABLE))
)
PRODUCE = Answers(
    api="Produce",
    # INVALID_PRODUCER_EPOCH may come from the coordinator's abort after a timeout; our abort shows which.
    fenced=frozenset((ErrorCode.PRODUCER_FENCED,)),
    fatal=frozenset(
        (
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            ErrorCode.UNSUPPORTED_VERSION,
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        )
    ),
    otherwise=AbortableTransactionError,
)


def is_passing(error: MillstreamError) -> bool:
    """Return True if the request is sent again after this error."""
    return is_retriable(error) and not isinstance(error, TransactionError)
