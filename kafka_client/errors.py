"""The tree of errors that all packages share, and Kafka's error codes.

    MillstreamError
    ├── ConfigError               a setting is wrong: has key, value and what is allowed
    ├── MalformedMessage          bytes on the wire do not parse: close the connection
    ├── CorruptRecordBatch        a record batch is inconsistent or its CRC is wrong
    │   └── UnreadableBatch       a reader met one in a log: stop, or go on after its offsets
    ├── ConnectionClosed          the connection was closed: reconnect and retry
    ├── RequestTimedOut           no response in time: retry
    ├── AuthenticationFailed      client or broker refused the login: correct the settings
    │   └── TlsFailed             the TLS handshake failed: certificates, versions, a listener without TLS
    └── KafkaError                a broker's error code
        ├── RetriableError        retry after a backoff
        │   └── StaleMetadata     refresh metadata first, then retry
        ├── RebalanceNeeded       join the group again
        ├── OffsetOutOfRange      choose another position
        │   └── LogTruncated      records that were read are no longer in the log: choose another position
        ├── RecordsRefused        leave out or correct the records it names, and produce the others again
        ├── Fenced                a newer instance took over: stop
        └── TransactionError      a transactional producer cannot go on as it is
            ├── AbortableTransactionError     abort, then go on with the next transaction
            │   └── TransactionRebalanced     abort, and join the group again (also a RebalanceNeeded)
            └── FatalTransactionError         close the producer; a new one may start
                └── ProducerFenced            a newer one has the transactional id: stop (also a Fenced)

The class of an error says what the caller has to do; its code and text say what happened. Codes are those of
Kafka's protocol guide.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any


class ErrorCode(IntEnum):
    """Kafka's protocol error codes."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    INVALID_FETCH_SIZE = 4
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    REPLICA_NOT_AVAILABLE = 9
    MESSAGE_TOO_LARGE = 10
    STALE_CONTROLLER_EPOCH = 11
    OFFSET_METADATA_TOO_LARGE = 12
    NETWORK_EXCEPTION = 13
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_TOPIC_EXCEPTION = 17
    RECORD_LIST_TOO_LARGE = 18
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    INVALID_TIMESTAMP = 32
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
    POLICY_VIOLATION = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    DUPLICATE_SEQUENCE_NUMBER = 46
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTION_COORDINATOR_FENCED = 52
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    SECURITY_DISABLED = 54
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    LOG_DIR_NOT_FOUND = 57
    SASL_AUTHENTICATION_FAILED = 58
    UNKNOWN_PRODUCER_ID = 59
    REASSIGNMENT_IN_PROGRESS = 60
    DELEGATION_TOKEN_AUTH_DISABLED = 61
    DELEGATION_TOKEN_NOT_FOUND = 62
    DELEGATION_TOKEN_OWNER_MISMATCH = 63
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65
    DELEGATION_TOKEN_EXPIRED = 66
    INVALID_PRINCIPAL_TYPE = 67
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    LISTENER_NOT_FOUND = 72
    TOPIC_DELETION_DISABLED = 73
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    UNSUPPORTED_COMPRESSION_TYPE = 76
    STALE_BROKER_EPOCH = 77
    OFFSET_NOT_AVAILABLE = 78
    MEMBER_ID_REQUIRED = 79
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
    ELECTION_NOT_NEEDED = 84
    NO_REASSIGNMENT_IN_PROGRESS = 85
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    INVALID_RECORD = 87
    UNSTABLE_OFFSET_COMMIT = 88
    THROTTLING_QUOTA_EXCEEDED = 89
    PRODUCER_FENCED = 90
    RESOURCE_NOT_FOUND = 91
    DUPLICATE_RESOURCE = 92
    UNACCEPTABLE_CREDENTIAL = 93
    INCONSISTENT_VOTER_SET = 94
    INVALID_UPDATE_VERSION = 95
    FEATURE_UPDATE_FAILED = 96
    PRINCIPAL_DESERIALIZATION_FAILURE = 97
    SNAPSHOT_NOT_FOUND = 98
    POSITION_OUT_OF_RANGE = 99
    UNKNOWN_TOPIC_ID = 100
    DUPLICATE_BROKER_REGISTRATION = 101
    BROKER_ID_NOT_REGISTERED = 102
    INCONSISTENT_TOPIC_ID = 103
    INCONSISTENT_CLUSTER_ID = 104
    TRANSACTIONAL_ID_NOT_FOUND = 105
    FETCH_SESSION_TOPIC_ID_ERROR = 106
    INELIGIBLE_REPLICA = 107
    NEW_LEADER_ELECTED = 108
    OFFSET_MOVED_TO_TIERED_STORAGE = 109
    FENCED_MEMBER_EPOCH = 110
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112
    STALE_MEMBER_EPOCH = 113
    MISMATCHED_ENDPOINT_TYPE = 114
    UNSUPPORTED_ENDPOINT_TYPE = 115
    UNKNOWN_CONTROLLER_ID = 116
    UNKNOWN_SUBSCRIPTION_ID = 117
    TELEMETRY_TOO_LARGE = 118
    INVALID_REGISTRATION = 119
    TRANSACTION_ABORTABLE = 120
    INVALID_RECORD_STATE = 121
    SHARE_SESSION_NOT_FOUND = 122
    INVALID_SHARE_SESSION_EPOCH = 123
    FENCED_STATE_EPOCH = 124
    INVALID_VOTER_KEY = 125
    DUPLICATE_VOTER = 126
    VOTER_NOT_FOUND = 127
    INVALID_REGULAR_EXPRESSION = 128
    REBOOTSTRAP_REQUIRED = 129
    STREAMS_INVALID_TOPOLOGY = 130
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131
    STREAMS_TOPOLOGY_FENCED = 132
    SHARE_SESSION_LIMIT_REACHED = 133
    GROUP_DELETION_FAILED = 134
    STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED = 135
    CONTROLLER_ID_NOT_REGISTERED = 136


_RETRIABLE = frozenset(
    (
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_SHARE_SESSION_EPOCH,
        ErrorCode.SHARE_SESSION_LIMIT_REACHED,
    )
)


class MillstreamError(Exception):
    """Root of every error that Millstream raises on purpose."""


class ConfigError(MillstreamError):
    """A setting that cannot be used.

    `key` and `value` are as the user wrote them; `allowed` says which values are allowed.
    """

    def __init__(self, key: str, value: object, allowed: str) -> None:
        super().__init__(key, value, allowed)
        self.key = key
        self.value = value
        self.allowed = allowed

    def __str__(self) -> str:
        return f"{self.key}={self.value!s}: {self.allowed}"


class MalformedMessage(MillstreamError):
    """Bytes from a peer that do not form the expected message."""


class CorruptRecordBatch(MillstreamError):
    """A record batch whose lengths, magic, counts or CRC are inconsistent."""


class UnreadableBatch(CorruptRecordBatch):
    """A batch in a log that cannot be read, because a disk or another program damaged it.

    By its header it has the offsets `first_offset` to `last_offset` of a partition, and `record_count`
    records. Stop, or go on at `last_offset + 1` without its records.
    """

    def __init__(
        self,
        topic: str,
        partition: int,
        *,
        first_offset: int,
        last_offset: int,
        record_count: int,
        reason: str,
    ) -> None:
        super().__init__(
            f"{topic}-{partition}: the batch of offsets {first_offset} to {last_offset} cannot be read: "
            f"{reason}. To go on without it, seek to offset {last_offset + 1} or have the reader skip such "
            "batches"
        )
        self.topic = topic
        self.partition = partition
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.record_count = record_count
        self.reason = reason


class ConnectionClosed(MillstreamError):
    """A connection to a broker that was closed, or could not be opened."""


class RequestTimedOut(MillstreamError):
    """A request that a broker did not answer in time."""


class AuthenticationFailed(MillstreamError):
    """A refused login, by the broker or by this client: correct the settings; a retry does not help.

    `mechanism`, `user` and `broker` (host:port) are empty if unknown. The text contains no secret. Kafka's
    AuthenticationException.
    """

    def __init__(self, reason: str, mechanism: str = "", user: str = "", broker: str = "") -> None:
        super().__init__(reason, mechanism, user, broker)
        self.reason = reason
        self.mechanism = mechanism
        self.user = user
        self.broker = broker

    def __str__(self) -> str:
        what = f"SASL {self.mechanism} login" if self.mechanism else "login"
        who = f" of {self.user!r}" if self.user else ""
        where = f" at {self.broker}" if self.broker else ""
        return f"{what}{who}{where} failed: {self.reason}"


class TlsFailed(AuthenticationFailed):
    """A failed TLS handshake: a certificate is refused, or only one side uses TLS."""

    def __str__(self) -> str:
        return f"TLS with {self.broker}: {self.reason}"


class KafkaError(MillstreamError):
    """An error code from a broker, or one that our broker answers with."""

    def __init__(self, code: int, message: str = "") -> None:
        super().__init__(code, message)
        self.code = ErrorCode(code)
        self.message = message
        self.broker_message: str | None = None
        """The error message sent by the broker, if any."""

    @property
    def retriable(self) -> bool:
        """True if Kafka marks the code as retriable."""
        return self.code in _RETRIABLE

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message}" if self.message else self.code.name


class RetriableError(KafkaError):
    """An error after which to retry, after a backoff."""


BROKER_AWAY = (ConnectionClosed, RequestTimedOut, RetriableError)
"""Errors of a broker that is restarting."""


class StaleMetadata(RetriableError):
    """A leader or coordinator that has moved: refresh metadata, then retry."""


class RebalanceNeeded(KafkaError):
    """The end of the group's generation for this member: join again."""


class OffsetOutOfRange(KafkaError):
    """A position outside the log.

    `topic`, `partition`, `offset`, `start` and `end` say how far; -1 if unknown.
    """

    def __init__(
        self,
        code: int = ErrorCode.OFFSET_OUT_OF_RANGE,
        message: str = "",
        *,
        topic: str = "",
        partition: int = -1,
        offset: int = -1,
        start: int = -1,
        end: int = -1,
    ) -> None:
        super().__init__(code, message)
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.start = start
        self.end = end


class RecordsRefused(KafkaError):
    """A batch that was refused because of some of its records (KIP-467).

    `record_errors` are (index in the batch, the record's error), by index.
    """

    def __init__(self, code: int, message: str, record_errors: Sequence[tuple[int, str | None]]) -> None:
        super().__init__(code, message)
        self.record_errors = record_errors

    def of(self, start: int, end: int) -> KafkaError:
        """Return the error for the sender of the records from `start` to before `end` of the batch."""
        mine = [(index, text) for index, text in self.record_errors if start <= index < end]
        if mine:
            index, text = mine[0]
            return RecordsRefused(self.code, f"record {index - start}: {text or self.message}", mine)
        return KafkaError(ErrorCode.INVALID_RECORD, "the batch it was sent in had invalid records of others")


class LogTruncated(OffsetOutOfRange):
    """A log that lost records which were read (KIP-320): other records have, or will have, their offsets.

    `offset` and `leader_epoch` are the position and the epoch of the record before it. From
    `diverging_offset` on the log differs from the one that was read; the record before it is of
    `diverging_epoch`. Both are -1 if the broker does not know. Kafka's LogTruncationException.
    """

    def __init__(
        self,
        *,
        message: str = "",
        leader_epoch: int = -1,
        diverging_offset: int = -1,
        diverging_epoch: int = -1,
        **place: Any,
    ) -> None:
        super().__init__(message=message, **place)
        self.leader_epoch = leader_epoch
        self.diverging_offset = diverging_offset
        self.diverging_epoch = diverging_epoch


class Fenced(KafkaError):
    """A newer instance or epoch that took over: stop, do not retry."""


class TransactionError(KafkaError):
    """An error of a transactional producer, which can only go on as its class says.

    `code` is the broker's; for errors without a broker, such as a delivery timeout, the nearest code.
    """


class AbortableTransactionError(TransactionError):
    """A transaction that cannot be committed: abort it, and go on with the next.

    Until then every other call raises it again. KIP-1050 calls it abortable.
    """


class TransactionRebalanced(AbortableTransactionError, RebalanceNeeded):
    """Offsets of the transaction that the group's coordinator refused: the member's generation is over
    (KIP-447).

    Abort, and join the group again. Kafka's CommitFailedException.
    """


class FatalTransactionError(TransactionError):
    """A producer that cannot be used any more: every call raises it again. Close it; a new one recovers
    the id.
    """


class ProducerFenced(FatalTransactionError, Fenced):
    """A newer producer with this transactional id, or the coordinator has given up on this producer: stop."""


_STALE = frozenset(
    (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NOT_CONTROLLER,
    )
)
_REBALANCE = frozenset(
    (
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.MEMBER_ID_REQUIRED,
    )
)
_FENCED = frozenset(
    (
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.TRANSACTION_COORDINATOR_FENCED,
        ErrorCode.FENCED_MEMBER_EPOCH,
    )
)


def error_for(code: int, message: str = "") -> KafkaError:
    """Return the exception for an error code from the wire; an unknown code becomes UNKNOWN_SERVER_ERROR."""
    try:
        error_code = ErrorCode(code)
    except ValueError:
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, message or f"unknown error code {code}")
    if error_code is ErrorCode.OFFSET_OUT_OF_RANGE:
        return OffsetOutOfRange(error_code, message)
    if error_code in _STALE:
        return StaleMetadata(error_code, message)
    if error_code in _REBALANCE:
        return RebalanceNeeded(error_code, message)
    if error_code in _FENCED:
        return Fenced(error_code, message)
    if error_code in _RETRIABLE:
        return RetriableError(error_code, message)
    return KafkaError(error_code, message)
