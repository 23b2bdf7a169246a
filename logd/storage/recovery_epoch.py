"""The leader epoch that logs begin after an unclean stop, remembered by their folder (KIP-320).

A power loss takes records that were acknowledged, and their offsets are used again. Only a new leader epoch
tells a consumer, so whoever may have lost something begins one:

    recovery-leader-epoch-checkpoint:
        0        version
        1        number of lines
        7        the largest leader epoch that was begun in this folder after an unclean stop

    every epoch under which this folder's logs have answered  ≤  the larger of this number and what their own
    `leader-epoch-checkpoint` and batches say

An epoch that was announced must never be announced again, even if a second power loss takes all that was
written under it. One number for all logs of a folder is enough for that, and so an unclean start forces one
file to the disk, however many logs there are. Where the epoch began in each log says its own
`leader-epoch-checkpoint`, which follows with the log's next flush or at the clean stop: until then no batch
behind the recovery point is of another epoch, and recovery finds out again.
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
"""Logs serve in epoch 0 from their creation on."""


class EpochLog(Protocol):
    """A log that can begin an epoch."""

    @property
    def highest_epoch(self) -> int:
        """The largest leader epoch found of it, also if nothing of it is left; -1 without one."""

    def begin_epoch(self, epoch: int) -> None:
        """From its end on it is in this leader epoch."""


class RecoveryEpoch:
    """`announced` is the number at the start: no earlier life announced a larger one through recovery."""

    __slots__ = ("_disk", "_epoch", "_is_raised", "_path", "announced")

    def __init__(self, disk: Disk, folder: Path) -> None:
        self._disk = disk
        self._path = folder / RECOVERY_EPOCH
        self.announced = self._epoch = _read(self._path)
        self._is_raised = False

    def begin(self, logs: Iterable[EpochLog], *, above: int = NONE_BEGUN) -> None:
        """Have each log begin an epoch larger than `above`, than all it had and than all begun in here in
        earlier lives; they may be served then. Blocks (two fsyncs, in one life once as a rule). OSError.
        """
        begun = tuple(logs)
        epoch = max((above, *(log.highest_epoch for log in begun))) + 1
        if not self._is_raised:
            epoch = max(epoch, self._epoch + 1)
        if epoch > self._epoch:
            write_atomically(self._disk, self._path, encode_lines([str(epoch)]))
            self._epoch = epoch
        self._is_raised = True
        for log in begun:
            log.begin_epoch(self._epoch)


def _read(path: Path) -> int:
    try:
        return max((int(epoch) for (epoch,) in read_lines(path)), default=NONE_BEGUN)
    except ValueError as error:
        logger.warning("ignoring checkpoint %s: %s", path, error)
        return NONE_BEGUN
