"""Since when a task's inputs bring nothing, and what is to be called then. No I/O, no clock of its own.

An input is idle if everything up to its log end was processed and nothing came since. What was heard of the
end may be old: a broker that cannot be reached brings nothing either. So once the time is over the brokers
are asked (`runtime.idle_ends`), and only if they answer that there is nothing more, idleness is *confirmed*.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from kafka_client import TopicPartition
from streams.runtime.task.queue import InputQueue

STEP_MAX_MS = 1_000
"""So much of the time between two looks counts at most: what a clock jumps, an application is paused, or a
process is suspended, is no time in which records could have come.
"""


class IdleWatch:
    """Looks at a task's inputs. ``on_idle``: times in ms, and what is to be called once they are over, again
    and again as long as nothing comes.
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
        """None: all time counts."""
        self.is_confirmed = False
        """Whether the brokers said so since something became due."""
        self.has_closed = False
        """Whether something was called since the last commit."""

    @property
    def inputs(self) -> list[TopicPartition]:
        """The inputs that are looked at."""
        return list(self._queues)

    @property
    def is_due(self) -> bool:
        """Whether the inputs were idle for long enough, as far as is known here."""
        return any(self._idle_ms >= due for due in self._due)

    def look(self, now: int, *, is_holding: bool = False) -> None:
        """Count the time since the last look, unless something came, or is still to be processed.

        ``is_holding``: nodes keep records that are not through yet.
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

    def heard(self, ends: Mapping[TopicPartition, int]) -> None:
        """Hear where the inputs end, open transactions included: if there is more, they are not idle."""
        if all(ends.get(tp) == queue.fetched for tp, queue in self._queues.items()):
            self.is_confirmed = self.is_due
        else:
            self._restart()

    def _restart(self) -> None:
        self._idle_ms, self.is_confirmed = 0, False
        self._due = [timeout for timeout, _ in self._on_idle]

    def take_due(self) -> Iterator[Callable[[], None]]:
        """What is to be called now, each once, those of nodes above others first."""
        self.is_confirmed = False
        for number, (timeout, callback) in enumerate(self._on_idle):
            if self._idle_ms >= self._due[number]:
                self._due[number] = self._idle_ms + timeout
                self.has_closed = True
                yield callback
