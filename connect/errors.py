"""What goes wrong in Connect, by what the caller does next.

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
    """A connector or task cannot go on; Kafka Connect's ConnectException."""


class RetriableError(ConnectError):
    """Raised by a plugin: call me again with the same records; Kafka Connect's RetriableException."""


class PartitionsFenced(ConnectError):
    """Raised by a sink task: its target has seen another task take its partitions.

    The worker asks the group. Partitions that are still the task's are closed, opened again and read from
    their committed offsets; others are let go.
    """


class DataError(ConnectError):
    """A key, value or header does not fit its schema or its converter; Kafka Connect's DataException."""


class NotFound(ConnectError):
    """No connector, task or plugin of that name."""
