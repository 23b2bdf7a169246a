"""How long a task's inputs are idle, and the callbacks for then. No I/O, no clock of its own.

An input is idle if all records before its log end are processed and no record has arrived since. The known
log end may be old: a broker that cannot be reached sends nothing either. So after the timeout the brokers are
asked (`idle_ends`). Idleness is *confirmed* only if they answer that there are no more records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from kafka_client import TopicPartition
from streams.runtime.task.queue import InputQueue

STEP_MAX_MS = 1_000
"""The limit on the time counted between two looks.

No records could arrive while the clock jumped, the application was paused or the process was suspended.
"""


class IdleWatch:
    """A watch over the inputs of one task.

    ``on_idle`` has timeouts in ms and their callbacks, which are called repeatedly while the inputs are idle.
    """

    def __init__(
        self,
        queues: Mapping[TopicPartition, InputQueue],
        on_idle: Sequence[tuple[int, Callable[[], None]]],
        now: int,
    ) -> None:
        self._queues = queues
        self._on_idle = on_idle
        self._looked_at = now
        self._fetched: list[int] = []
        self._idle_ms = 0
        self._due = [timeout for timeout, _ in on_idle]
        self.step_max_ms: int | None = STEP_MAX_MS
        """The limit on the time counted between two looks; None for no limit."""
        self.is_confirmed = False
        """True if the brokers confirmed that the inputs are idle since a timeout was due."""
        self.has_closed = False
        """True if a callback was called since the last commit."""

    @property
    def inputs(self) -> list[TopicPartition]:
        """The watched inputs."""
        return list(self._queues)

    @property
    def is_due(self) -> bool:
        """True if the inputs were idle for a timeout, by the known log ends."""
        return any(self._idle_ms >= due for due in self._due)

    def look(self, now: int, *, is_holding: bool = False) -> None:
        """Count the time since the last look, unless records arrived or are unprocessed.

        ``is_holding``: True if nodes hold records.
        """
        step, self._looked_at = max(now - self._looked_at, 0), now
        if self.step_max_ms is not None:
            step = min(step, self.step_max_ms)
        queues = self._queues.values()
        fetched = [queue.fetched for queue in queues]
        if (
            is_holding
            or fetched != self._fetched
            or not all(queue.is_caught_up and not queue.has_input for queue in queues)
        ):
            self._fetched = fetched
            self._restart()
        else:
            self._idle_ms += step

    def check_ends(self, ends: Mapping[TopicPartition, int]) -> None:
        """Confirm idleness if these log ends, with open transactions, show no more records; else restart."""
        if all(ends.get(tp) == queue.fetched for tp, queue in self._queues.items()):
            self.is_confirmed = self.is_due
        else:
            self._restart()

    def _restart(self) -> None:
        self._idle_ms, self.is_confirmed = 0, False
        self._due = [timeout for timeout, _ in self._on_idle]

    def take_due(self) -> Iterator[Callable[[], None]]:
        """Yield the callbacks that are due, those of upstream nodes first."""
        self.is_confirmed = False
        for number, (timeout, callback) in enumerate(self._on_idle):
            if self._idle_ms >= self._due[number]:
                self._due[number] = self._idle_ms + timeout
                self.has_closed = True
                yield callback
