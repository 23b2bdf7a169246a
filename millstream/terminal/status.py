"""The exit statuses of all commands, and the status of each error."""

from __future__ import annotations

from enum import IntEnum

from kafka_client.errors import (
    AuthenticationFailed,
    ConfigError,
    ConnectionClosed,
    ErrorCode,
    KafkaError,
    MillstreamError,
    RequestTimedOut,
)


class Status(IntEnum):
    """The meanings of exit statuses."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    UNREACHABLE = 4
    NOT_ALLOWED = 5
    PARTLY = 6
    """Only a part of the work was done; stderr says what was not."""
    UNHEALTHY = 7
    INTERRUPTED = 130


class NotFound(MillstreamError):
    """A named topic, group or the like does not exist."""


class UsageError(MillstreamError):
    """The command line is inconsistent; the text says what to give instead."""


class Partly(MillstreamError):
    """Only a part of the work was done; the text says what was not."""


class Unhealthy(MillstreamError):
    """The checked objects exist and are not healthy."""


class Unreachable(MillstreamError):
    """Another service than a broker does not answer; the text says how it is named."""


class NotAllowed(MillstreamError):
    """Another service than a broker refuses access; the text says where credentials are set."""


class Declined(MillstreamError):
    """The user said no, or could not be asked."""


_NOT_FOUND = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
    ErrorCode.LOG_DIR_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.RESOURCE_NOT_FOUND,
}
_NOT_ALLOWED = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    ErrorCode.POLICY_VIOLATION,
    ErrorCode.TOPIC_DELETION_DISABLED,
}
_UNREACHABLE = {
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.BROKER_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NETWORK_EXCEPTION,
}
_CLASSES: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], Status], ...] = (
    ((ConfigError, UsageError), Status.USAGE),
    (NotFound, Status.NOT_FOUND),
    (Partly, Status.PARTLY),
    (Unhealthy, Status.UNHEALTHY),
    ((AuthenticationFailed, NotAllowed), Status.NOT_ALLOWED),
    ((Unreachable, ConnectionClosed, RequestTimedOut, TimeoutError, ConnectionError), Status.UNREACHABLE),
)

REMEDIES = {
    Status.UNREACHABLE: "brokers are named by --bootstrap-server, --profile or KAFKA_BOOTSTRAP_SERVERS",
    Status.NOT_ALLOWED: "credentials are given by --command-config or --profile",
}
"""Hints for errors of brokers, which contain none."""


def remedy_of(error: BaseException) -> str | None:
    """Return a hint for the error, or None if its own text has one."""
    return None if isinstance(error, (Unreachable, NotAllowed)) else REMEDIES.get(status_of(error))


def status_of(error: BaseException) -> Status:
    """Return the exit status of `error`."""
    if isinstance(error, KafkaError):
        if error.code in _NOT_FOUND:
            return Status.NOT_FOUND
        if error.code in _NOT_ALLOWED:
            return Status.NOT_ALLOWED
        if error.code in _UNREACHABLE:
            return Status.UNREACHABLE
    for classes, status in _CLASSES:
        if isinstance(error, classes):
            return status
    return Status.FAILED
