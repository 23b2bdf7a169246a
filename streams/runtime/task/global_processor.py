"""The processor that keeps a global store (`add_global_store`): outside of tasks, on every instance.

The processor gets the topic's records during a restore as well as later, so the store may have any content
derived from them. It reads and writes its own store only, forwards no records and has no schedules.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from streams.errors import StreamsError, TopologyError
from streams.processors.punctuation import Punctuation, PunctuationType
from streams.processors.record import Headers
from streams.processors.wiring import TaskState
from streams.state import CachedStore
from streams.topology import Handlers, Subtopology, wire

TASK_ID = "global"


class _GlobalState(TaskState):
    def schedule(self, interval_ms: int, callback: Callable[[int], None], on: PunctuationType) -> Punctuation:
        raise TopologyError(
            "the processor of a global store cannot schedule(): no task runs it, and no commit follows"
        )


class GlobalProcessor:
    """The processor of one global store. Create and call it in the worker."""

    def __init__(
        self,
        subtopology: Subtopology,
        store: CachedStore,
        clock: Callable[[], int],
        *,
        application_id: str,
        state_dir: Callable[[], Path],
    ) -> None:
        (source,) = subtopology.sources
        self._topic = source.topics[0]
        self._clock = clock
        self._state = _GlobalState(
            task_id=TASK_ID, wall_clock=clock(), application_id=application_id, state_dir=state_dir
        )
        self._program = wire(subtopology, {store.name: store}, state=self._state, handlers=Handlers())
        self._head = self._program.heads[source.name]

    def process(
        self, partition: int, offset: int, key: Any, value: Any, timestamp: int, headers: Headers
    ) -> None:
        """Process a record. Raises StreamsError if the processor raises."""
        state = self._state
        state.topic, state.partition, state.offset = self._topic, partition, offset
        state.stream_time, state.wall_clock = max(state.stream_time, timestamp), self._clock()
        try:
            self._head(key, value, timestamp, headers)
        except Exception as error:
            node = self._program.node_that_raised(error)
            raise StreamsError(
                f"{node}, which keeps a global store, failed over the record at offset {offset} of "
                f"{self._topic}-{partition}: {type(error).__name__}: {error}"
            ) from error

    def close(self) -> None:
        """Close the processor."""
        self._program.close()
