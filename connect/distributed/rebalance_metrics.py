"""The metrics of a worker's rebalances, under the names of Kafka Connect's."""

from __future__ import annotations

import time
from collections.abc import Callable

from kafka_client.metrics.metrics import Values
from kafka_client.metrics.windowed import Windowed


class RebalanceMetrics:
    """The counts and times of a worker's rebalances. `clock` returns monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._times = Windowed(clock)
        self._began_at: float | None = None
        self._ended_at: float | None = None

    def begin(self) -> None:
        """Note that the worker joins its group; a rebalance that has begun goes on."""
        if self._began_at is None:
            self._began_at = self._clock()

    def end(self) -> None:
        """Note that the worker has an assignment."""
        self._ended_at = self._clock()
        if self._began_at is not None:
            self._times.record(self._ended_at - self._began_at)
            self._began_at = None

    def values(self, generation: int) -> Values:
        """Return `connect-worker-rebalance-metrics`, with times in milliseconds."""
        ended_at = self._ended_at
        return {
            "epoch": generation,
            "completed-rebalances-total": self._times.count,
            "rebalancing": float(self._began_at is not None),
            "rebalance-avg-time-ms": self._times.average * 1000,
            "rebalance-max-time-ms": self._times.largest * 1000,
            "time-since-last-rebalance-ms": (
                float("nan") if ended_at is None else (self._clock() - ended_at) * 1000
            ),
        }
