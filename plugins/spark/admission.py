"""How much of what is available a micro-batch takes, as in Spark's Kafka source."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from kafka_client import TopicPartition

Offsets = Mapping[TopicPartition, int]


def limit_offsets(most: int, starts: Offsets, ends: Offsets) -> dict[TopicPartition, int]:
    """Return ends with about `most` records, shared out by what each partition has.

    A partition with records gets at least one. `starts` has every partition of `ends`.
    """
    sizes = {tp: end - starts[tp] for tp, end in ends.items() if end > starts[tp]}
    total = sum(sizes.values())
    limited = dict(ends)
    for tp, size in sizes.items():
        share = most * (size / total)
        count = math.ceil(share) if share < 1 else math.floor(share)
        limited[tp] = min(ends[tp], starts[tp] + count)
    return limited


class TriggerDelay:
    """The wait for a batch of at least `least` records, for `max_delay_ms` since the last batch.

    The first batch does not wait.
    """

    def __init__(self, least: int, max_delay_ms: int, clock: Callable[[], float]) -> None:
        self._least = least
        self._max_delay_ms = max_delay_ms
        self._clock = clock
        self._last: float | None = None

    def delays(self, starts: Offsets, ends: Offsets) -> bool:
        """Return True if there are too few records and the wait is not over; else the wait begins again."""
        now = self._clock()
        pending = sum(end - starts[tp] for tp, end in ends.items())
        is_over = self._last is None or (now - self._last) * 1000 >= self._max_delay_ms
        if pending < self._least and not is_over:
            return True
        self._last = now
        return False
