"""Partitions that cannot go on: why, and when they are tried again. No clock, no tasks: time is passed in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush

from kafka_client import Backoff, TopicPartition
from mirror.errors import MirrorError

FIRST_SECONDS = 1.0
MAX_SECONDS = 600.0
ATTEMPTS = 3
"""After so many retriable failures in a row `run(until_caught_up=True)` stops waiting for the partition."""


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A partition that is not copied since `since`; `failures` in a row; tried again at `retry_at`."""

    error: MirrorError
    failures: int
    since: float
    retry_at: float

    @property
    def reason(self) -> str:
        """The kind of error, by its class's name."""
        return type(self.error).__name__

    @property
    def is_given_up(self) -> bool:
        """Whether it probably stays quarantined until an operator does something."""
        return not self.error.retriable or self.failures >= ATTEMPTS


class Quarantine:
    """Each failure in a row doubles the wait, from `FIRST_SECONDS` to `MAX_SECONDS`, as `Backoff` does.

    What is asked in every turn is kept ready: those in quarantine for long cost nothing.
    """

    def __init__(self, random: Callable[[], float]) -> None:
        self._random = random
        self._held: dict[TopicPartition, Quarantined] = {}
        self._backoffs: dict[TopicPartition, Backoff] = {}
        self._on_probation: dict[TopicPartition, None] = {}
        self._to_retry: set[TopicPartition] = set()
        """Those that are not given up."""
        self._retries: list[tuple[float, TopicPartition]] = []
        self._due: dict[TopicPartition, None] = {}

    @property
    def held(self) -> Mapping[TopicPartition, Quarantined]:
        """The partitions that are quarantined."""
        return self._held

    def put(self, error: MirrorError, now: float) -> Quarantined:
        """Take a partition in, or again."""
        backoff = self._backoffs.setdefault(error.tp, Backoff(FIRST_SECONDS, MAX_SECONDS, self._random))
        retry_at = now + backoff.next()
        before = self._held.get(error.tp)
        since = now if before is None else before.since
        held = Quarantined(error, backoff.failures, since, retry_at)
        self._take_out(error.tp)
        self._held[error.tp] = held
        if not held.is_given_up:
            self._to_retry.add(error.tp)
        heappush(self._retries, (retry_at, error.tp))
        return held

    def due(self, now: float) -> list[TopicPartition]:
        """The partitions whose next attempt is due."""
        while self._retries and self._retries[0][0] <= now:
            retry_at, tp = heappop(self._retries)
            held = self._held.get(tp)
            if held is not None and held.retry_at == retry_at:
                self._due[tp] = None
        return list(self._due)

    @property
    def all_given_up(self) -> bool:
        """Whether none of the partitions that are quarantined is expected to come back by itself."""
        return not self._to_retry

    def release(self, tp: TopicPartition) -> None:
        """The partition is copied again.

        Its count of failures stays until its copy has advanced (`forget`).
        """
        self._take_out(tp)
        if tp in self._backoffs:
            self._on_probation[tp] = None

    def forget(self, tp: TopicPartition) -> None:
        """The copy has advanced, or is not wanted any more: the next failure counts as the first one."""
        self._backoffs.pop(tp, None)
        self._take_out(tp)

    def on_probation(self) -> list[TopicPartition]:
        """Partitions that are copied again after a failure, and have not been seen to advance yet."""
        return list(self._on_probation)

    def _take_out(self, tp: TopicPartition) -> None:
        self._held.pop(tp, None)
        self._on_probation.pop(tp, None)
        self._to_retry.discard(tp)
        self._due.pop(tp, None)
