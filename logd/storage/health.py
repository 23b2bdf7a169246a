"""Whether a log folder's disk is still trusted.

After a failed write or fsync nobody knows what is on the disk: the kernel may have dropped the dirty pages
and report the next fsync as done. So the first failure takes the whole folder offline, and only opening it
again, with recovery, brings it back. What was not written is never acknowledged.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from logd.errors import ErrorCode, KafkaError, error_for

logger = logging.getLogger(__name__)


class Health:
    """Shared by a folder and all its logs; `failure` says why it is offline, None while it serves."""

    __slots__ = ("_on_offline", "failure", "folder")

    def __init__(self, folder: Path, on_offline: Callable[[str], None] | None = None) -> None:
        self.folder = folder
        self.failure: str | None = None
        self._on_offline = on_offline

    def fail(self, doing: str, error: OSError) -> KafkaError:
        """Take the folder offline; returns the error to raise. Called from whichever thread met the error."""
        if self.failure is None:
            self.failure = f"log folder {self.folder} is offline: {doing}: {error.strerror or error}"
            logger.error("%s; its partitions are not served until a restart", self.failure)
            if self._on_offline is not None:
                self._on_offline(self.failure)
        return self.error()

    def error(self) -> KafkaError:
        """What every operation on an offline folder raises."""
        return error_for(ErrorCode.KAFKA_STORAGE_ERROR, self.failure or "")
