"""The paths that a provider may read: `allowed.paths` (KIP-993)."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from kafka_client.errors import ConfigError

_log = logging.getLogger(__name__)
KEY = "allowed.paths"


class AllowedPaths:
    """Paths, and everything below them. Without any, every path is allowed."""

    def __init__(self, text: str | None) -> None:
        """Parse absolute paths with commas between them. Raises ConfigError if one does not exist."""
        self._paths = [self._checked(each.strip()) for each in (text or "").split(",") if each.strip()]

    @staticmethod
    def _checked(text: str) -> Path:
        path = Path(os.path.normpath(text))
        if not path.is_absolute():
            raise ConfigError(KEY, text, "must be an absolute path")
        if not path.exists():
            raise ConfigError(KEY, text, "does not exist")
        return path

    def allowed(self, text: str) -> Path | None:
        """Return the path, or None with a log line if it is outside the allowed ones.

        As in Kafka, `..` is resolved in the text first. Symbolic links are followed too.
        """
        if not self._paths:
            return Path(text)
        path = Path(os.path.normpath(text))
        if any(path.is_relative_to(each) and _is_below(path, each) for each in self._paths):
            return path
        _log.error("the path %s is not within allowed.paths: nothing is read from it", text)
        return None


def _is_below(path: Path, allowed: Path) -> bool:
    """Return True if the path, with its symbolic links followed, is still below `allowed`."""
    return path.resolve().is_relative_to(allowed.resolve())
