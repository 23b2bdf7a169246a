"""Partitions that cannot be copied for now, each with its error and the time of its next attempt.

This module has no clock and no tasks: callers pass the time in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush

from kafka_client import Backoff, TopicPartition
from mirror.errors import MirrorError

FIRST_SECONDS = 1.0
MAX_SECONDS = 600.0
ATTEMPTS = 3
"""Retriable failures in a row after which `run(until_caught_up=True)` stops waiting for the partition."""


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A partition that was not copied since `since`, after `failures` in a row; `retry_at` is its next
    attempt.
    """

    error: MirrorError
    failures: int
    since: float
    retry_at: float

    @property
    def reason(self) -> str:
        """The name of the error's class."""
        return type(self.error).__name__

    @property
    def is_given_up(self) -> bool:
        """True if the partition probably stays in quarantine until an operator acts."""
        return not self.error.retriable or self.failures >= ATTEMPTS


class Quarantine:
    """The quarantined partitions of one flow.

    Each failure in a row doubles the wait, from `FIRST_SECONDS` to `MAX_SECONDS`, as in `Backoff`. Retry
    times are in a heap, so partitions that are not due cost nothing per call.
    """

    def __init__(self, random: Callable[[], float]) -> None:
        self._random = random
        self._partitions: dict[TopicPartition, Quarantined] = {}
        self._backoffs: dict[TopicPartition, Backoff] = {}
        self._on_probation: dict[TopicPartition, None] = {}
        self._to_retry: set[TopicPartition] = set()
        """The partitions that are not given up."""
        self._retries: list[tuple[float, TopicPartition]] = []
        self._due: dict[TopicPartition, None] = {}

    @property
    def partitions(self) -> Mapping[TopicPartition, Quarantined]:
        """The quarantined partitions."""
        return self._partitions

    def put(self, error: MirrorError, now: float) -> Quarantined:
        """Quarantine the error's partition, or record its next failure. Return its entry."""
        backoff = self._backoffs.setdefault(error.tp, Backoff(FIRST_SECONDS, MAX_SECONDS, self._random))
        retry_at = now + backoff.next()
        before = self._partitions.get(error.tp)
        since = now if before is None else before.since
        entry = Quarantined(error, backoff.failures, since, retry_at)
        self._remove(error.tp)
        self._partitions[error.tp] = entry
        if not entry.is_given_up:
            self._to_retry.add(error.tp)
        heappush(self._retries, (retry_at, error.tp))
        return entry

    def due(self, now: float) -> list[TopicPartition]:
        """Return the partitions whose next attempt is due."""
        while self._retries and self._retries[0][0] <= now:
            retry_at, tp = heappop(self._retries)
            entry = self._partitions.get(tp)
            if entry is not None and entry.retry_at == retry_at:
                self._due[tp] = None
        return list(self._due)

    @property
    def all_given_up(self) -> bool:
        """True if every quarantined partition is given up."""
        return not self._to_retry

    def release(self, tp: TopicPartition) -> None:
        """Take a partition out of quarantine, because it is copied again.

        Its count of failures remains until its copy has advanced (`forget`).
        """
        self._remove(tp)
        if tp in self._backoffs:
            self._on_probation[tp] = None

    def forget(self, tp: TopicPartition) -> None:
        """Forget a partition that advanced or is no longer copied: its next failure counts as the first."""
        self._backoffs.pop(tp, None)
        self._remove(tp)

    def on_probation(self) -> list[TopicPartition]:
        """Return the partitions that are copied again after a failure but have not advanced yet."""
        return list(self._on_probation)

    def _remove(self, tp: TopicPartition) -> None:
        self._partitions.pop(tp, None)
        self._on_probation.pop(tp, None)
        self._to_retry.discard(tp)
        self._due.pop(tp, None)
