"""The health of a log directory: whether its disk is still trusted.

After a failed write or fsync the state of the disk is unknown: the kernel may have dropped the dirty pages
and report the next fsync as done. So the first failure takes the whole directory offline. Only a restart
opens it again, with recovery. Records that were not written are never acknowledged.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Mapping
from pathlib import Path

from kafka_client.errors import ErrorCode, KafkaError, error_for

logger = logging.getLogger(__name__)

NO_ROOM = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))
"""Errors of a sound disk that is full, or of a limit that is reached."""

_REMEDIES: Mapping[int, str] = {
    errno.ENOSPC: "make room on its volume",
    errno.EDQUOT: "make room, or raise the quota of the broker's user",
    errno.EFBIG: "raise the limit of file sizes (ulimit -f)",
    errno.EROFS: "mount its volume for writing again",
    errno.EACCES: "give the broker's user the right to write there",
    errno.EPERM: "give the broker's user the right to write there",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.ENFILE: "raise the system's limit of open files",
}


class Health:
    """The state of a log directory and all its logs.

    `failure` says why the directory is offline; None while it serves.
    """

    __slots__ = ("_on_offline", "directory", "failure")

    def __init__(self, directory: Path, on_offline: Callable[[str], None] | None = None) -> None:
        self.directory = directory
        self.failure: str | None = None
        self._on_offline = on_offline

    def fail(self, doing: str, error: Exception) -> KafkaError:
        """Take the directory offline; return the error to raise. Called from any thread.

        An OSError is the disk's. Any other error is a mistake in this code, in the middle of a change that
        must not go on.
        """
        if self.failure is None:
            offline, restart = (
                f"log directory {self.directory} is offline: {doing}",
                "are not served until a restart",
            )
            if isinstance(error, OSError):
                self.failure = f"{offline}: {error.strerror or error}"
                logger.error("%s; its partitions %s", self.failure, restart)
                logger.error(
                    "what to do about %s: %s, then restart the broker", self.directory, remedy(error)
                )
            else:
                self.failure = f"{offline}: {error!r}"
                logger.error("%s; its partitions %s", self.failure, restart, exc_info=error)
            if self._on_offline is not None:
                self._on_offline(self.failure)
        return self.error()

    def error(self) -> KafkaError:
        """Return the error that every operation on an offline directory raises."""
        return error_for(ErrorCode.KAFKA_STORAGE_ERROR, self.failure or "")


def remedy(error: OSError) -> str:
    """Return what an operator can do about an error of the disk."""
    return _REMEDIES.get(error.errno or 0, "check its disk, or take the folder out of log.dirs and lose it")
