"""The leader epoch that logs start after an unclean stop, stored in their log directory (KIP-320).

A power loss may lose acknowledged records, and their offsets are used again. Consumers only notice a new
leader epoch, so logs that may have lost records start one:

    recovery-leader-epoch-checkpoint:
        0        version
        1        number of lines
        7        the largest leader epoch that was started in this directory after an unclean stop

    every epoch under which this directory's logs have answered  ≤  the larger of this number and the epochs
    in their own `leader-epoch-checkpoint` and batches

An epoch that was announced must never be announced again, even if a second power loss loses all records of
that epoch. One number for all logs of a directory is enough for that. So an unclean start syncs one file, for
any number of logs. Each log's `leader-epoch-checkpoint` has the epoch's start offset in that log. It is
written with the log's next flush or at the clean stop. Until then all batches after the recovery point are of
that epoch, so recovery can restore it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from logd.storage.checkpoints import encode_lines, read_lines
from logd.storage.disk import Disk, write_atomically
from logd.storage.names import RECOVERY_EPOCH

logger = logging.getLogger(__name__)

NONE_BEGUN = 0
"""The epoch of new logs, before any unclean stop."""


class EpochLog(Protocol):
    """A log that can start an epoch."""

    @property
    def highest_epoch(self) -> int:
        """The log's largest leader epoch, even if none of its records are left; -1 without one."""

    def begin_epoch(self, epoch: int) -> None:
        """Start this leader epoch at the end of the log."""


class RecoveryEpoch:
    """The file with the directory's largest epoch. `announced` is its number at the start."""

    __slots__ = ("_disk", "_epoch", "_is_raised", "_path", "announced")

    def __init__(self, disk: Disk, directory: Path) -> None:
        self._disk = disk
        self._path = directory / RECOVERY_EPOCH
        self.announced = self._epoch = _read(self._path)
        self._is_raised = False

    def begin(self, logs: Iterable[EpochLog], *, above: int = NONE_BEGUN) -> None:
        """Have each log start an epoch larger than `above`, all its own, and all earlier ones of this
        directory.

        The logs may serve then. Blocks: two fsyncs, usually once per process. Raises OSError.
        """
        recovered = tuple(logs)
        epoch = max((above, *(log.highest_epoch for log in recovered))) + 1
        if not self._is_raised:
            epoch = max(epoch, self._epoch + 1)
        if epoch > self._epoch:
            write_atomically(self._disk, self._path, encode_lines([str(epoch)]))
            self._epoch = epoch
        self._is_raised = True
        for log in recovered:
            log.begin_epoch(self._epoch)


def _read(path: Path) -> int:
    try:
        return max((int(epoch) for (epoch,) in read_lines(path)), default=NONE_BEGUN)
    except ValueError as error:
        logger.warning("ignoring checkpoint %s: %s", path, error)
        return NONE_BEGUN
