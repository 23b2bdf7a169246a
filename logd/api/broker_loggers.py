"""The levels of a broker's loggers as settings of the resource BROKER_LOGGER (KIP-412).

They belong to the process: nothing is stored, and a restart begins with the levels of the command line.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.logs.levels import LEVELS, ROOT, logger_named, name_of
from kafka_client.wire.messages.describe_configs import DescribeConfigsResourceResult
from logd.broker.topics.configs import Alteration, Operation

BROKER_LOGGER = 8
DYNAMIC_BROKER_LOGGER_CONFIG = 6
"""The source of these settings, in DescribeConfigs."""
VALID_LEVELS = ("FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE")


def described_loggers(
    node_id: int, name: str, keys: Sequence[str] | None
) -> list[DescribeConfigsResourceResult]:
    """Return the level of every logger, also of those that have it from their parent. Raises KafkaError."""
    check_own(node_id, name)
    return [
        DescribeConfigsResourceResult(
            name=logger,
            value=name_of(logger_named(logger).getEffectiveLevel()),
            config_source=DYNAMIC_BROKER_LOGGER_CONFIG,
        )
        for logger in _loggers()
        if not keys or logger in keys
    ]


def alter_loggers(node_id: int, name: str, alterations: Iterable[Alteration], *, validate_only: bool) -> None:
    """Set levels of loggers, or have them inherit again. Raises KafkaError, and changes nothing then."""
    check_own(node_id, name)
    changes = list(alterations)
    existing = set(_loggers())
    for change in changes:
        _check(change, existing)
    if validate_only:
        return
    for logger, operation, level in changes:
        is_set = operation == Operation.SET and level is not None
        logger_named(logger).setLevel(LEVELS[level or ""] if is_set else logging.NOTSET)


def check_own(node_id: int, name: str) -> None:
    """Raise KafkaError(INVALID_REQUEST) unless the resource is this broker's."""
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
    if name != str(node_id):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {node_id} but received {name}"
        )


def _check(change: Alteration, existing: set[str]) -> None:
    if change.operation not in (Operation.SET, Operation.DELETE):
        names = {each.value: each.name for each in Operation}
        operation = names.get(change.operation, f"Unknown operation type {change.operation}")
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"{operation} operation is not allowed for the BROKER_LOGGER resource"
        )
    if change.key not in existing:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {change.key} does not exist!")
    if change.operation == Operation.DELETE:
        if change.key == ROOT:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, "Removing the log level of the root logger is not allowed"
            )
    elif change.value not in VALID_LEVELS:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Cannot set the log level of {change.key} to {change.value} as it is not a supported log level. "
            f"Valid log levels are {', '.join(VALID_LEVELS)}",
        )


def _loggers() -> list[str]:
    """Return the names of all loggers that modules have asked for, and the root's."""
    listed = dict(logging.getLogger().manager.loggerDict)
    return [ROOT, *sorted(name for name, logger in listed.items() if isinstance(logger, logging.Logger))]
