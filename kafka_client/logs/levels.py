"""The levels of loggers, by the names of Kafka's log4j and of Python."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from kafka_client.errors import ConfigError

ROOT = "root"
"""The name of the logger that all others inherit from."""
LEVELS: Mapping[str, int] = {
    "OFF": logging.CRITICAL + 10,
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": 5,
    "ALL": 1,
}
"""Python's levels by Kafka's names, the highest first."""
_PYTHONS_NAMES: Mapping[str, int] = {"CRITICAL": logging.CRITICAL, "WARNING": logging.WARNING}


def parse_levels(options: Sequence[str], default: str) -> dict[str, int]:
    """Return the level of each logger that an option names, and the root's; the last option counts.

    An option is `LEVEL`, for the root, or `LOGGER=LEVEL`. Raises ConfigError for an unknown level.
    """
    levels = {ROOT: LEVELS[default]}
    for option in options:
        logger, separator, name = option.rpartition("=")
        level = {**LEVELS, **_PYTHONS_NAMES}.get(name.strip().upper())
        if level is None or (separator and not logger.strip()):
            raise ConfigError("--log-level", option, f"LEVEL or LOGGER=LEVEL, a level being {_names()}")
        levels[logger.strip() or ROOT] = level
    return levels


def logger_named(name: str) -> logging.Logger:
    """Return the logger of this name; the root is `root`."""
    return logging.getLogger(None if name == ROOT else name)


def name_of(level: int) -> str:
    """Return Kafka's name of a level of Python's."""
    return next((name for name, least in LEVELS.items() if level >= least), "ALL")


def _names() -> str:
    return ", ".join(LEVELS)
