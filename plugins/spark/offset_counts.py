"""Counts how often each offset of a partition occurs, in blocks, so that gaps in the offsets cost nothing."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

BLOCK = 1 << 16
"""Offsets per block; a block takes as many bytes."""
_MOST = 255

Counts = npt.NDArray[np.uint8]


class OffsetCounts:
    """The number of times each offset was added, up to 255."""

    def __init__(self) -> None:
        self._blocks: dict[int, Counts] = {}

    def add(self, offsets: Any) -> None:
        """Add offsets, an array or a sequence of ints, in any order."""
        array = np.asarray(offsets, dtype=np.int64)
        numbers = array // BLOCK
        for number in np.unique(numbers).tolist():
            within = array[numbers == number] % BLOCK
            counts = np.bincount(within, minlength=BLOCK) + self.block(number)
            self._blocks[number] = np.minimum(counts, _MOST).astype(np.uint8)

    def block(self, number: int) -> Counts:
        """Return the counts of the offsets from `number * BLOCK` on."""
        block = self._blocks.get(number)
        return np.zeros(BLOCK, np.uint8) if block is None else block

    def numbers(self) -> set[int]:
        """Return the numbers of the blocks that have any offset."""
        return set(self._blocks)

    def total(self) -> int:
        """Return how many offsets were added."""
        return sum(int(block.sum(dtype=np.int64)) for block in self._blocks.values())


class Differences(NamedTuple):
    """How the offsets in a table differ from those in the log, each with its first offset (-1: none)."""

    missing: int
    first_missing: int
    repeated: int
    first_repeated: int
    foreign: int
    first_foreign: int


def compare(log: OffsetCounts, table: OffsetCounts, log_start: int) -> Differences:
    """Compare the offsets in the log with those in the table.

    missing: in the log and not in the table. repeated: more than once in the table. foreign: in the table, at
    or after `log_start`, and not in the log.
    """
    missing, repeated, foreign = _Tally(), _Tally(), _Tally()
    for number in sorted(log.numbers() | table.numbers()):
        start, in_log, in_table = number * BLOCK, log.block(number), table.block(number)
        missing.add(start, (in_log > 0) & (in_table == 0))
        repeated.add(start, in_table > 1)
        foreign.add(start, (in_table > 0) & (in_log == 0) & (np.arange(start, start + BLOCK) >= log_start))
    return Differences(
        missing=missing.count,
        first_missing=missing.first,
        repeated=repeated.count,
        first_repeated=repeated.first,
        foreign=foreign.count,
        first_foreign=foreign.first,
    )


class _Tally:
    """A count of offsets, and the first of them."""

    def __init__(self) -> None:
        self.count = 0
        self.first = -1

    def add(self, start: int, differs: npt.NDArray[np.bool_]) -> None:
        """Count the offsets of one block that differ."""
        count = int(differs.sum())
        if count and self.first < 0:
            self.first = start + int(differs.argmax())
        self.count += count
