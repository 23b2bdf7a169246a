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
    """The pairs (epoch, start offset) of a log, oldest first. `dirty` when the file is older than the pairs;
    a flush of the log writes it.

    The file need not be written at once: recovery reads newer epochs from the batches. An epoch without a
    batch is not worth a flush of its own: `is_begun` is true until the next flush writes it, and the
    directory's `recovery_epoch` keeps it until then. `highest` is the largest epoch that was ever added.
    """

    __slots__ = ("dirty", "entries", "highest", "is_begun", "latest")

    def __init__(self, entries: list[tuple[int, int]] | None = None) -> None:
        self.entries = entries or []
        self.latest = self.highest = self.entries[-1][0] if self.entries else NO_EPOCH
        self.dirty = self.is_begun = False

    @classmethod
    def read(cls, path: Path) -> LeaderEpochs:
        """Read the checkpoint at `path`; the result is empty if the file is missing or broken."""
        try:
            return cls(sorted((int(epoch), int(start)) for epoch, start in read_lines(path)))
        except ValueError:
            return cls()

    def encode(self) -> bytes:
        """Return the content of the checkpoint file."""
        return encode_lines(f"{epoch} {start}" for epoch, start in self.entries)

    def assign(self, epoch: int, start_offset: int) -> None:
        """Add `epoch`, whose first batch was written at `start_offset`. An epoch older than the latest is
        ignored.
        """
        if epoch <= self.latest:
            return
        while self.entries and self.entries[-1][1] >= start_offset:
            self.entries.pop()
        self.entries.append((epoch, start_offset))
        self._changed()

    def correct(self, epoch: int, start_offset: int) -> None:
        """Correct the pairs by a batch of `epoch` that recovery has read at `start_offset`.

        The batch is right and the file may be wrong. The file may have an epoch there that was begun without
        a batch, and dropped when the leader sent batches of an older one.
        """
        index = bisect_right(self.entries, start_offset, key=_start)
        end = index
        while end and self.entries[end - 1][0] > epoch:
            end -= 1
        if end == index:
            return self.assign(epoch, start_offset)
        wrote = self.entries[end - 1][0] if end else NO_EPOCH
        self.entries[end:index] = [(epoch, start_offset)] if epoch > wrote else []
        return self._changed()

    def begin(self, epoch: int, end_offset: int) -> None:
        """Add an epoch that begins at the end of the log, with no batch yet."""
        dirty = self.dirty
        self.assign(epoch, end_offset)
        self.dirty, self.is_begun = dirty, True

    def start_write(self) -> bytes | None:
        """Return the content to write now, or None if the file is up to date."""
        if not (self.dirty or self.is_begun):
            return None
        self.dirty = self.is_begun = False
        return self.encode()

    def epoch_of(self, offset: int) -> int:
        """Return the epoch in which the record at `offset` was written, or -1 if it is unknown."""
        index = bisect_right(self.entries, offset, key=_start)
        return self.entries[index - 1][0] if index else NO_EPOCH

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """Return the largest epoch not above `epoch`, and its end offset; (-1, -1) if it is unknown
        (KIP-279).
        """
        if epoch < 0 or epoch > self.latest:
            return NO_EPOCH, NO_OFFSET
        if epoch == self.latest:
            return epoch, log_end_offset
        index = bisect_right(self.entries, epoch, key=_epoch)
        end_epoch = self.entries[index - 1][0] if index else epoch
        return end_epoch, self.entries[index][1]

    def begin_after(self, end_offset: int) -> bool:
        """Return True if an epoch begins after `end_offset`: a log that ends there has lost records."""
        return bool(self.entries) and self.entries[-1][1] > end_offset

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget epochs that begin at or after `end_offset`: the log was truncated there."""
        remaining = [entry for entry in self.entries if entry[1] < end_offset]
        if len(remaining) != len(self.entries):
            self.entries = remaining
            self._changed()

    def before(self, end_offset: int) -> LeaderEpochs:
        """Return the epochs that begin before `end_offset`."""
        return LeaderEpochs([entry for entry in self.entries if entry[1] < end_offset])

    def replace(self, written: LeaderEpochs) -> None:
        """Take over the epochs of a truncated log, which are in the file already."""
        self.entries, self.latest = written.entries, written.latest
        self.dirty = self.is_begun = False

    def truncate_from_start(self, start_offset: int) -> None:
        """Drop the epochs that end before `start_offset`, where the log starts now; the epoch of that offset
        begins there.
        """
        index = bisect_right(self.entries, start_offset, key=_start)
        if index and self.entries[index - 1] != (epoch := self.entries[index - 1][0], start_offset):
            self.entries = [(epoch, start_offset), *self.entries[index:]]
            self._changed()

    def _changed(self) -> None:
        self.latest = self.entries[-1][0] if self.entries else NO_EPOCH
        self.highest = max(self.highest, self.latest)
        self.dirty = True
