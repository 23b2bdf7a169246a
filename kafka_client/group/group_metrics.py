"""The metrics of a group member, Kafka's `consumer-coordinator-metrics`."""

from __future__ import annotations

import time
from collections.abc import Callable

from kafka_client.metrics.metrics import Values
from kafka_client.metrics.windowed import Windowed, in_ms

NEVER = -1.0
"""The seconds since an event that has not happened yet, as in Kafka."""


class GroupMetrics:
    """A member's metrics, in seconds by `clock`, which is monotonic."""

    __slots__ = (
        "_clock",
        "_heartbeat_at",
        "_rebalanced_at",
        "assigned",
        "commit",
        "failed_rebalances",
        "heartbeat",
        "join",
        "lost",
        "rebalance",
        "revoked",
        "sync",
    )

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.heartbeat, self.commit = Windowed(clock), Windowed(clock)
        self.join, self.sync = Windowed(clock), Windowed(clock)
        self.rebalance = Windowed(clock)
        """The time from the first request for a generation until `on_assigned` has returned."""
        self.assigned, self.revoked, self.lost = Windowed(clock), Windowed(clock), Windowed(clock)
        """Times of the callbacks."""
        self.failed_rebalances = 0
        self._heartbeat_at: float | None = None
        self._rebalanced_at: float | None = None

    def beats(self) -> None:
        """Note that a heartbeat is being sent now."""
        self._heartbeat_at = self._clock()

    def rebalanced(self) -> None:
        """Note that a rebalance has ended now."""
        self._rebalanced_at = self._clock()

    def values(self, assigned_partitions: int) -> Values:
        """Return the metrics by Kafka's names, with times in milliseconds unless the name says otherwise."""
        return {
            "heartbeat-total": self.heartbeat.count,
            "heartbeat-response-time-max": self.heartbeat.largest * 1000,
            "last-heartbeat-seconds-ago": self._since(self._heartbeat_at),
            "join-total": self.join.count,
            **in_ms("join-time", self.join),
            "sync-total": self.sync.count,
            **in_ms("sync-time", self.sync),
            "rebalance-total": self.rebalance.count,
            "rebalance-latency-total": self.rebalance.total * 1000,
            **in_ms("rebalance-latency", self.rebalance),
            "failed-rebalance-total": self.failed_rebalances,
            "last-rebalance-seconds-ago": self._since(self._rebalanced_at),
            **in_ms("partition-assigned-latency", self.assigned),
            **in_ms("partition-revoked-latency", self.revoked),
            **in_ms("partition-lost-latency", self.lost),
            "commit-total": self.commit.count,
            **in_ms("commit-latency", self.commit),
            "assigned-partitions": assigned_partitions,
        }

    def _since(self, moment: float | None) -> float:
        return NEVER if moment is None else self._clock() - moment
