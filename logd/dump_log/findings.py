"""The findings in the dumped files: reported at the end as Kafka does, and by the exit status."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

Pairs = dict[Path, list[tuple[int, int]]]


@dataclass(slots=True)
class Findings:
    """The findings of all files. A pair is the value in an index and the value in the log.

    `corrupt` is set by everything except gaps between offsets, which compaction leaves.
    """

    err: TextIO
    corrupt: bool = False
    index_mismatches: Pairs = field(default_factory=dict)
    time_mismatches: Pairs = field(default_factory=dict)
    unordered_times: Pairs = field(default_factory=dict)
    missing_offsets: Pairs = field(default_factory=dict)
    gaps: Pairs = field(default_factory=dict)

    def note(self, kind: Pairs, path: Path, first: int, second: int) -> None:
        """Add a pair to one of the lists."""
        if kind is not self.gaps:
            self.corrupt = True
        kind.setdefault(path.absolute(), []).append((first, second))

    def complain(self, path: Path, reason: object) -> None:
        """Report at once that a file is not what its name says, and why."""
        self.corrupt = True
        print(f"{path}: {reason}", file=self.err)

    def show(self) -> None:
        """Print the lists, in the order and the words of Kafka's tool."""
        for path, pairs in self.index_mismatches.items():
            print(f"Mismatches in :{path}", file=self.err)
            for indexed, actual in reversed(pairs):
                print(f"  Index offset: {indexed}, log offset: {actual}", file=self.err)
        for path, pairs in self.time_mismatches.items():
            print(f"Found timestamp mismatch in :{path}", file=self.err)
            for indexed, actual in pairs:
                print(f"  Index timestamp: {indexed}, log timestamp: {actual}", file=self.err)
        for path, pairs in self.unordered_times.items():
            print(f"Found out of order timestamp in :{path}", file=self.err)
            for indexed, before in pairs:
                print(f"  Index timestamp: {indexed}, Previously indexed timestamp: {before}", file=self.err)
        for pairs in self.missing_offsets.values():
            print("The following indexed offsets are not found in the log.", file=self.err)
            for indexed, actual in pairs:
                print(f"Indexed offset: {indexed}, found log offset: {actual}", file=self.err)
        for path, pairs in self.gaps.items():
            print(f"Non-consecutive offsets in {path}", file=self.err)
            for last, following in reversed(pairs):
                print(f"  {last} is followed by {following}", file=self.err)
