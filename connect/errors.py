"""Errors of Connect, grouped by what the caller does next.

    MillstreamError
    └── ConnectError            the task fails: its state becomes FAILED, with the trace
        ├── RetriableError      the same call may be made again after a backoff
        ├── PartitionsFenced    a sink's partitions were taken by another task: ask the group whose they are
        ├── DataError           a record cannot be converted: the record, not the system, is at fault
        ├── NotFound            no such connector, task or plugin
        ├── AlreadyExists       there is a connector of this name: choose another, or change its config
        ├── Forbidden           the request does not prove that it may be made
        ├── BadRequest          the request makes no sense in the present state: correct it
        ├── Rebalancing         the group of workers rebalances: ask again soon
        └── NotLeader           another worker has to be asked

Settings that cannot be used are `kafka_client.errors.ConfigError`; InvalidConfig tells several at once,
and a StatedError has a message of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from kafka_client.errors import ConfigError, MillstreamError

__all__ = [
    "AlreadyExists",
    "BadRequest",
    "ConfigError",
    "ConnectError",
    "DataError",
    "Forbidden",
    "InvalidConfig",
    "MillstreamError",
    "NotFound",
    "NotLeader",
    "PartitionsFenced",
    "Rebalancing",
    "RetriableError",
    "StatedError",
]


class InvalidConfig(ConfigError):
    """Several settings that cannot be used; `key`, `value` and `allowed` are those of the first."""

    def __init__(self, errors: Sequence[ConfigError]) -> None:
        first = errors[0]
        super().__init__(first.key, first.value, first.allowed)
        self.errors = tuple(errors)

    def __reduce__(self) -> tuple[type[InvalidConfig], tuple[Sequence[ConfigError]]]:
        return InvalidConfig, (self.errors,)

    def __str__(self) -> str:
        return "; ".join(str(error) for error in self.errors)


class StatedError(ConfigError):
    """A setting that cannot be used; `allowed` is the whole message, which reports show as it is."""


class ConnectError(MillstreamError):
    """An error that fails a connector or task; Kafka Connect's ConnectException."""


class RetriableError(ConnectError):
    """An error a plugin raises to be called again with the same records; Kafka's RetriableException."""


class PartitionsFenced(ConnectError):
    """An error a sink task raises if its target shows that another task has taken its partitions.

    The worker asks the group. Partitions that are still the task's are closed, opened again and read from
    their committed offsets; others are released.
    """


class DataError(ConnectError):
    """An error about a key, value or header that its schema or converter refuses; Kafka's DataException."""


class NotFound(ConnectError):
    """An error for an unknown name of a connector, task or plugin."""


class AlreadyExists(ConnectError):
    """An error for a new connector whose name another connector has."""


class Forbidden(ConnectError):
    """An error for a request between workers whose signature is wrong (KIP-507)."""


class BadRequest(ConnectError):
    """An error for a request that makes no sense in the present state, as offsets of a running connector."""


class Rebalancing(ConnectError):
    """An error for a request that cannot be served while the group of workers rebalances."""


class NotLeader(ConnectError):
    """An error for a request that only the group's leader serves, whose REST address is `leader_url`."""

    def __init__(self, message: str, leader_url: str) -> None:
        super().__init__(message)
        self.leader_url = leader_url
