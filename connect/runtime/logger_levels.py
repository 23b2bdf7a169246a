"""LoggerLevels: the levels of this process's loggers, and when each was changed (KIP-495, KIP-976)."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from connect.errors import BadRequest
from kafka_client.logs.levels import LEVELS, ROOT, logger_named, name_of


class LoggerLevels:
    """The levels of this process's loggers, and when each was changed by `set`."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._modified: dict[str, int] = {}

    def all(self) -> dict[str, dict[str, Any]]:
        """Return the loggers that have a level of their own, and the root."""
        levels = {name: self._shown(name) for name, logger in sorted(_loggers().items()) if logger.level}
        return {**levels, ROOT: self._shown(ROOT)}

    def one(self, name: str) -> dict[str, Any] | None:
        """Return a logger's level, which it may have from its parent; None if there is no such logger."""
        return self._shown(name) if name == ROOT or name in _loggers() else None

    def set(self, name: str, level: str) -> list[str]:
        """Set the level of a logger and all below it. Return the names of those whose level changed.

        Raises BadRequest for a level that does not exist.
        """
        number = LEVELS.get(level.upper())
        if number is None:
            raise BadRequest(f"{level!r} is no logging level; use {', '.join(LEVELS)}")
        below = "" if name == ROOT else f"{name}."
        loggers = {each: logger for each, logger in _loggers().items() if each.startswith(below)}
        loggers[name] = logger_named(name)
        changed = sorted(each for each, logger in loggers.items() if logger.getEffectiveLevel() != number)
        for each, logger in loggers.items():
            if each == name or logger.level:  # the others inherit the new level
                logger.setLevel(number)
        self._modified.update(dict.fromkeys(changed, int(self._clock() * 1000)))
        return changed

    def _shown(self, name: str) -> dict[str, Any]:
        level = name_of(logger_named(name).getEffectiveLevel())
        return {"level": level, "last_modified": self._modified.get(name)}


def _loggers() -> dict[str, logging.Logger]:
    listed = dict(logging.getLogger().manager.loggerDict)
    return {name: logger for name, logger in listed.items() if isinstance(logger, logging.Logger)}
