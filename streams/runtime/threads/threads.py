"""The threads of an instance beside its event loop."""

from __future__ import annotations

from dataclasses import dataclass

from streams.runtime.threads.coroutines import LoopCoroutines
from streams.runtime.threads.worker import Worker


@dataclass(frozen=True, slots=True, kw_only=True)
class Threads:
    """Where an instance's work runs."""

    worker: Worker
    """The thread that processes records."""
    restorer: Worker
    """The thread that opens, restores and closes stores."""
    coroutines: LoopCoroutines
    """The coroutines of asynchronous nodes, in the event loop."""

    def close(self) -> None:
        """End both threads."""
        self.worker.close()
        self.restorer.close()
