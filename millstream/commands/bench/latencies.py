"""Latencies of many records, noted a batch at a time."""

from __future__ import annotations

from collections import Counter


class Latencies:
    """A histogram of records by latency in whole milliseconds, rounded down as in Kafka's tool."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self.count = 0
        self._sum_ms = 0.0
        self._max_ms = 0.0

    def note(self, latency_ms: float, records: int) -> None:
        """Count `records` records with a latency of `latency_ms`."""
        self._counts[int(latency_ms)] += records
        self.count += records
        self._sum_ms += latency_ms * records
        self._max_ms = max(self._max_ms, latency_ms)

    @property
    def average_ms(self) -> float:
        """The mean latency; 0 without records."""
        return self._sum_ms / self.count if self.count else 0.0

    @property
    def max_ms(self) -> float:
        """The longest latency; 0 without records."""
        return self._max_ms

    def percentiles_ms(self, *shares: float) -> list[int]:
        """Return a latency in ms for each share of the records, which 0.5 asks the median of.

        The result is in ascending order, whatever the order of ``shares``.
        """
        percentiles, passed = [], 0
        ordered = iter(sorted(self._counts.items()))
        latency = 0
        for share in sorted(shares):
            while passed < share * self.count:
                latency, records = next(ordered)
                passed += records
            percentiles.append(latency)
        return percentiles
