"""The level of a command's log on the standard error."""

from __future__ import annotations

from enum import StrEnum


class LogLevel(StrEnum):
    """A level of Python's logging."""

    DEBUG = "DEBUG"
    INFO = "INFO"
    WARNING = "WARNING"
    ERROR = "ERROR"
    CRITICAL = "CRITICAL"
