"""The error tree every package shares, and Kafka's error codes.

    MillstreamError
    ├── ConfigError               a setting is wrong: names key, value and what is allowed
    ├── MalformedMessage          bytes on the wire do not parse: close the connection
    ├── CorruptRecordBatch        a record batch does not hold together or its CRC is wrong
    │   └── UnreadableBatch       a reader met one in a log: stop, or go on after the offsets it names
    ├── ConnectionClosed          the peer went away: reconnect and retry
    ├── RequestTimedOut           no answer in time: retry
    ├── AuthenticationFailed      client and broker do not let each other in: mend the settings
    │   └── TlsFailed             the same of TLS: certificates, versions, a listener without it
    └── KafkaError                a broker's answer, with its error code
        ├── RetriableError        try again after a backoff
        │   └── StaleMetadata     refresh metadata first, then try again
        ├── RebalanceNeeded       join the group again
        ├── OffsetOutOfRange      choose another position
        │   └── LogTruncated      records that were read are no longer in the log: choose another position
        ├── RecordsRefused        leave out or mend the records it names, and produce the others again
        ├── Fenced                somebody newer took our place: stop
        └── TransactionError      a transactional producer cannot go on as it is
            ├── AbortableTransactionError     abort, then go on with the next transaction
            │   └── TransactionRebalanced     abort, and join the group again (also a RebalanceNeeded)
            └── FatalTransactionError         close the producer; another one may begin anew
                └── ProducerFenced            a newer one has the transactional id: stop (also a Fenced)

A class says what the caller does next; the code and the text say what happened.
Codes are those of Kafka's protocol guide.
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
    """Root of every error Millstream raises on purpose."""


class ConfigError(MillstreamError):
    """A setting that cannot be used.

    `key` and `value` are as the user gave them; `allowed` says what would do.
    """

    def __init__(self, key: str, value: object, allowed: str) -> None:
        super().__init__(key, value, allowed)
        self.key = key
        self.value = value
        self.allowed = allowed

    def __str__(self) -> str:
        return f"{self.key}={self.value!s}: {self.allowed}"


class MalformedMessage(MillstreamError):
    """Bytes from a peer that are not the message they claim to be."""


class CorruptRecordBatch(MillstreamError):
    """A record batch whose lengths, magic, counts or CRC do not hold together."""


class UnreadableBatch(CorruptRecordBatch):
    """A batch in a log that no reader can read, because a disk or another program damaged it.

    It holds the offsets `first_offset` to `last_offset` of a partition, and `record_count` records, as its
    header says. Stop, or go on at `last_offset + 1` without its records.
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
    """The connection to a broker ended, or could not be made."""


class RequestTimedOut(MillstreamError):
    """A broker did not answer within the request's time."""


class AuthenticationFailed(MillstreamError):
    """A broker refuses our credentials, or we refuse its: mend the settings; a retry would not help.

    `mechanism`, `user` and `broker` (host:port) are empty where they are not known. The text holds no secret.
    Kafka's AuthenticationException.
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
    """TLS does not come about: a certificate is refused, or only one side speaks TLS."""

    def __str__(self) -> str:
        return f"TLS with {self.broker}: {self.reason}"


class KafkaError(MillstreamError):
    """An error code answered by a broker, or to be answered by ours."""

    def __init__(self, code: int, message: str = "") -> None:
        super().__init__(code, message)
        self.code = ErrorCode(code)
        self.message = message
        self.broker_message: str | None = None
        """The error message sent by the broker, if any."""

    @property
    def retriable(self) -> bool:
        """Whether Kafka marks the code as one that may go away by itself."""
        return self.code in _RETRIABLE

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message}" if self.message else self.code.name


class RetriableError(KafkaError):
    """Try again after a backoff."""


BROKER_AWAY = (ConnectionClosed, RequestTimedOut, RetriableError)
"""What a broker's restart looks like to those who wait for it."""


class StaleMetadata(RetriableError):
    """The leader or coordinator moved: refresh metadata, then try again."""


class RebalanceNeeded(KafkaError):
    """The group's generation is over for this member: join again."""


class OffsetOutOfRange(KafkaError):
    """The position is outside the log.

    `topic`, `partition`, `offset`, `start` and `end` say how far; -1 where it is not known.
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
    """A batch was refused because of some of its records (KIP-467).

    `record_errors` are (index in the batch, what is wrong with the record), by index.
    """

    def __init__(self, code: int, message: str, record_errors: Sequence[tuple[int, str | None]]) -> None:
        super().__init__(code, message)
        self.record_errors = record_errors

    def of(self, start: int, end: int) -> KafkaError:
        """What to tell whoever sent the records from `start` to before `end` of the batch."""
        mine = [(index, text) for index, text in self.record_errors if start <= index < end]
        if mine:
            index, text = mine[0]
            return RecordsRefused(self.code, f"record {index - start}: {text or self.message}", mine)
        return KafkaError(ErrorCode.INVALID_RECORD, "the batch it was sent in had invalid records of others")


class LogTruncated(OffsetOutOfRange):
    """The log lost records that were read (KIP-320): other records stand, or will stand, at their offsets.

    `offset` and `leader_epoch` are the position and the epoch of the record before it. From
    `diverging_offset` on the log is another one than the one that was read; the record before it is of
    `diverging_epoch`. Both are -1 when the broker does not know. Kafka's LogTruncationException.
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
    """A newer instance or epoch took over: stop, do not retry."""


class TransactionError(KafkaError):
    """Nothing but what the class says helps a transactional producer on.

    `code` is the broker's; of what no broker said, such as a delivery timeout, the nearest one.
    """


class AbortableTransactionError(TransactionError):
    """The transaction cannot be committed: abort it, and go on with the next.

    Until then every other call raises it again. What KIP-1050 calls abortable.
    """


class TransactionRebalanced(AbortableTransactionError, RebalanceNeeded):
    """The group's coordinator refused the transaction's offsets, since the member's generation is over
    (KIP-447): abort, and join the group again. Kafka's CommitFailedException.
    """


class FatalTransactionError(TransactionError):
    """The producer is of no use any more: every call raises it again. Close it; a new one recovers the id."""


class ProducerFenced(FatalTransactionError, Fenced):
    """A newer producer with this transactional id has begun, or the coordinator gave up on this one: stop."""


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
    """The exception for an error code from the wire; an unknown code becomes UNKNOWN_SERVER_ERROR."""
    try:
        known = ErrorCode(code)
    except ValueError:
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, message or f"unknown error code {code}")
    if known is ErrorCode.OFFSET_OUT_OF_RANGE:
        return OffsetOutOfRange(known, message)
    if known in _STALE:
        return StaleMetadata(known, message)
    if known in _REBALANCE:
        return RebalanceNeeded(known, message)
    if known in _FENCED:
        return Fenced(known, message)
    if known in _RETRIABLE:
        return RetriableError(known, message)
    return KafkaError(known, message)
