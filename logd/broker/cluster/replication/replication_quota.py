"""The limit on bytes per second of a throttled reassignment (KIP-73).

`leader.replication.throttled.replicas` and `follower.replication.throttled.replicas` of a topic name the
throttled replicas. Only those out of sync are limited: others would fall out of sync. While the rate of the
last seconds is above the limit, a leader omits such partitions from its responses. A follower does not ask
for them. A response counts when it has arrived. So a limit below the size of a response is exceeded at times,
followed by a wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from logd.config.setting import LONG_MAX

if TYPE_CHECKING:
    from kafka_client.records.slice import FileSlice
    from logd.broker.partition.partition import Partition

WINDOWS = 11
"""Kafka's `replication.quota.window.num`."""
WINDOW_S = 1.0
"""And `replication.quota.window.size.seconds`."""
EVERY_REPLICA = "*"


class ReplicationQuota:
    """The quota of one side, leader or follower.

    `limit` returns the current limit in bytes a second, LONG_MAX for none; `now` is a clock (s).
    """

    def __init__(self, node_id: int, limit: Callable[[], int], now: Callable[[], float]) -> None:
        self._node_id = node_id
        self._limit = limit
        self._now = now
        self._windows: deque[tuple[float, int]] = deque()

    @property
    def is_set(self) -> bool:
        """True if there is a limit at all."""
        return self._limit() != LONG_MAX

    def covers(self, throttled: tuple[str, ...], partition: int) -> bool:
        """Return True if a topic's setting names this broker's replica."""
        if not throttled:
            return False
        partitions = _partitions(throttled, self._node_id)
        return partitions is None or partition in partitions

    def record(self, size: int) -> None:
        """Count bytes of throttled partitions that were sent or received."""
        now, windows = self._now(), self._windows
        if windows and now - windows[-1][0] < WINDOW_S:
            began, sum_ = windows[-1]
            windows[-1] = began, sum_ + size
        else:
            windows.append((now, size))

    @property
    def rate(self) -> float:
        """Bytes per second, over the current windows."""
        now, windows = self._now(), self._windows
        while windows and now - windows[0][0] >= WINDOWS * WINDOW_S:
            windows.popleft()
        if not windows:
            return 0.0
        return sum(size for _, size in windows) / max(now - windows[0][0], WINDOW_S)

    @property
    def is_exceeded(self) -> bool:
        """True if throttled partitions have to wait."""
        return self.is_set and self.rate > self._limit()


class ThrottledFetch:
    """A follower's fetch while there is a limit.

    `size` is the bytes read for it from partitions that the quota covers, to be recorded when the response is
    sent.
    """

    __slots__ = ("_is_in_sync", "quota", "size")

    def __init__(self, quota: ReplicationQuota, is_in_sync: Callable[[Partition], bool]) -> None:
        self.quota = quota
        self.size = 0
        self._is_in_sync = is_in_sync

    def let_through(self, partition: Partition, piece: FileSlice) -> FileSlice | None:
        """Return the piece, or None if it has to wait."""
        quota = self.quota
        if quota.covers(partition.config.leader_replication_throttled_replicas, partition.index):
            if quota.is_exceeded and not self._is_in_sync(partition):
                return None
            self.size += piece.length
        return piece


@lru_cache(maxsize=256)
def _partitions(throttled: tuple[str, ...], node_id: int) -> frozenset[int] | None:
    """Return the partitions in PARTITION:BROKER entries for this broker; None for all."""
    if EVERY_REPLICA in throttled:
        return None
    pairs = (each.split(":") for each in throttled if each)
    return frozenset(int(partition) for partition, broker in pairs if int(broker) == node_id)
