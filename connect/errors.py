"""Errors of Connect, grouped by what the caller does next.

    MillstreamError
    └── ConnectError            the task fails: its state becomes FAILED, with the trace
        ├── RetriableError      the same call may be made again after a backoff
        ├── PartitionsFenced    a sink's partitions were taken by another task: ask the group whose they are
        ├── DataError           a record cannot be converted: the record, not the system, is at fault
        └── NotFound            no such connector, task or plugin

Settings that cannot be used are `kafka_client.errors.ConfigError`.
"""

from __future__ import annotations

from kafka_client.errors import ConfigError, MillstreamError

__all__ = [
    "ConfigError",
    "ConnectError",
    "DataError",
    "MillstreamError",
    "NotFound",
    "PartitionsFenced",
    "RetriableError",
]


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
