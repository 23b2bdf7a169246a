"""How much a command tells on the standard error."""

from __future__ import annotations

from enum import StrEnum


class LogLevel(StrEnum):
    """Of Python's logging."""

    DEBUG = "DEBUG"
    INFO = "INFO"
    WARNING = "WARNING"
    ERROR = "ERROR"
    CRITICAL = "CRITICAL"
