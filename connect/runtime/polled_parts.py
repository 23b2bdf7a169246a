"""PolledParts: one poll of a task with transactions, in parts that each may end a transaction."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from connect.runtime.source_rows import Polled
from connect.runtime.transaction_requests import End


@dataclass(slots=True)
class PolledParts(Polled):
    """The parts of one `poll`, each prepared for the producer, with the end that follows it.

    There is one part at least; the last one may have no end.
    """

    parts: Sequence[tuple[Polled, End | None]] = ()

    @classmethod
    def of(cls, parts: Sequence[tuple[Polled, End | None]]) -> PolledParts:
        """Return parts as one poll."""
        return cls(polled_at=time.monotonic(), parts=parts)

    @property
    def count(self) -> int:
        """The number of polled records."""
        return sum(part.count for part, _ in self.parts)

    def sizes(self) -> Iterator[int]:
        """Yield the bytes of each record or batch."""
        return chain.from_iterable(part.sizes() for part, _ in self.parts)

    def __bool__(self) -> bool:
        return any(part for part, _ in self.parts)
