"""Which leader epoch began at which offset (KIP-101): `leader-epoch-checkpoint`, in memory and as text.

Invariant: epochs and start offsets both rise strictly from entry to entry.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import itemgetter
from pathlib import Path

from logd.storage.checkpoints import encode_lines, read_lines

NO_EPOCH = -1
NO_OFFSET = -1
_epoch = itemgetter(0)
_start = itemgetter(1)


class LeaderEpochs:
    """(epoch, start offset) pairs, oldest first. `dirty` when the file is behind; flushing the log writes it.

    It need not be written at once: recovery reads epochs newer than the file out of the batches. An epoch of
    which there is no batch yet is not worth a flush of its own: it `is_begun` until the next flush writes it,
    and the directory's `recovery_epoch` remembers that it was. `highest` is the largest epoch there ever was.
    """

    __slots__ = ("dirty", "entries", "highest", "is_begun", "latest")

    def __init__(self, entries: list[tuple[int, int]] | None = None) -> None:
        self.entries = entries or []
        self.latest = self.highest = self.entries[-1][0] if self.entries else NO_EPOCH
        self.dirty = self.is_begun = False

    @classmethod
    def read(cls, path: Path) -> LeaderEpochs:
        """The checkpoint at `path`; empty if it is missing or broken."""
        try:
            return cls(sorted((int(epoch), int(start)) for epoch, start in read_lines(path)))
        except ValueError:
            return cls()

    def encode(self) -> bytes:
        """The checkpoint file's content."""
        return encode_lines(f"{epoch} {start}" for epoch, start in self.entries)

    def assign(self, epoch: int, start_offset: int) -> None:
        """A batch of `epoch` was written at `start_offset`. An epoch older than the latest is ignored."""
        if epoch <= self.latest:
            return
        while self.entries and self.entries[-1][1] >= start_offset:
            self.entries.pop()
        self.entries.append((epoch, start_offset))
        self._changed()

    def found(self, epoch: int, start_offset: int) -> None:
        """Recovery has read a batch of `epoch` at `start_offset`, which says more than the file: an epoch may
        have been written there that was begun without a batch, and forgotten when the leader sent batches of
        an older one.
        """
        index = bisect_right(self.entries, start_offset, key=_start)
        kept = index
        while kept and self.entries[kept - 1][0] > epoch:
            kept -= 1
        if kept == index:
            return self.assign(epoch, start_offset)
        wrote = self.entries[kept - 1][0] if kept else NO_EPOCH
        self.entries[kept:index] = [(epoch, start_offset)] if epoch > wrote else []
        return self._changed()

    def begin(self, epoch: int, end_offset: int) -> None:
        """A new epoch begins at the end of the log, with no batch yet."""
        dirty = self.dirty
        self.assign(epoch, end_offset)
        self.dirty, self.is_begun = dirty, True

    def start_write(self) -> bytes | None:
        """What is to be written now, None if the file is right."""
        if not (self.dirty or self.is_begun):
            return None
        self.dirty = self.is_begun = False
        return self.encode()

    def epoch_of(self, offset: int) -> int:
        """The epoch a record was written in, -1 if unknown."""
        index = bisect_right(self.entries, offset, key=_start)
        return self.entries[index - 1][0] if index else NO_EPOCH

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest epoch not above `epoch` and where it ends; (-1, -1) if it is unknown (KIP-279)."""
        if epoch < 0 or epoch > self.latest:
            return NO_EPOCH, NO_OFFSET
        if epoch == self.latest:
            return epoch, log_end_offset
        index = bisect_right(self.entries, epoch, key=_epoch)
        found = self.entries[index - 1][0] if index else epoch
        return found, self.entries[index][1]

    def begin_behind(self, end_offset: int) -> bool:
        """Whether an epoch began behind `end_offset`: a log that ends there has lost records."""
        return bool(self.entries) and self.entries[-1][1] > end_offset

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget epochs that begin at or after `end_offset`: the log was truncated there."""
        kept = [entry for entry in self.entries if entry[1] < end_offset]
        if len(kept) != len(self.entries):
            self.entries = kept
            self._changed()

    def before(self, end_offset: int) -> LeaderEpochs:
        """Those that begin before `end_offset`."""
        return LeaderEpochs([entry for entry in self.entries if entry[1] < end_offset])

    def replace(self, written: LeaderEpochs) -> None:
        """The log was truncated to these, which are in the file."""
        self.entries, self.latest = written.entries, written.latest
        self.dirty = self.is_begun = False

    def truncate_from_start(self, start_offset: int) -> None:
        """The log now starts at `start_offset`: the epoch there begins there, older ones are forgotten."""
        index = bisect_right(self.entries, start_offset, key=_start)
        if index and self.entries[index - 1] != (epoch := self.entries[index - 1][0], start_offset):
            self.entries = [(epoch, start_offset), *self.entries[index:]]
            self._changed()

    def _changed(self) -> None:
        self.latest = self.entries[-1][0] if self.entries else NO_EPOCH
        self.highest = max(self.highest, self.latest)
        self.dirty = True
