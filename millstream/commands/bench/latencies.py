"""Latencies of many records, noted a batch at a time."""

from __future__ import annotations

from collections import Counter


class Latencies:
    """Whole milliseconds, as Kafka's tool rounds them, and how many records had each."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self.count = 0
        self._sum_ms = 0.0
        self._max_ms = 0.0

    def note(self, latency_ms: float, records: int) -> None:
        """So many records took so long."""
        self._counts[int(latency_ms)] += records
        self.count += records
        self._sum_ms += latency_ms * records
        self._max_ms = max(self._max_ms, latency_ms)

    @property
    def average_ms(self) -> float:
        """0 where nothing was noted."""
        return self._sum_ms / self.count if self.count else 0.0

    @property
    def max_ms(self) -> float:
        """The longest."""
        return self._max_ms

    def percentiles_ms(self, *shares: float) -> list[int]:
        """For each share (0.5: the median) the latency that so many records did not pass."""
        found, seen = [], 0
        ordered = iter(sorted(self._counts.items()))
        latency = 0
        for share in sorted(shares):
            while seen < share * self.count:
                latency, records = next(ordered)
                seen += records
            found.append(latency)
        return found
