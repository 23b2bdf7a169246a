"""ConfigChanges: what this worker writes to its group's config topic, one change after the other.

Kafka's DistributedHerder decides and writes on one thread. Here a lock does the same: a change is decided by
what the topic holds, written, and read back before the next change is decided. Otherwise a plan that was
decided while a connector was STARTED could follow the records of its stop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from connect.stores import ConfigRecord
from connect.stores.config_records import Decision


class ConfigChanges:
    """The changes of one worker. `write` returns once its records are read back."""

    def __init__(
        self,
        *,
        write: Callable[[Sequence[ConfigRecord]], Awaitable[None]],
        read_to_end: Callable[[], Awaitable[object]],
    ) -> None:
        self.lock = asyncio.Lock()
        """Held during a change, and by `LostConfigs` during its own writes."""
        self._write = write
        self._read_to_end = read_to_end
        self._is_uncertain = False
        """True after a write that failed, which may have reached the topic all the same."""
        self._running: set[asyncio.Task[None]] = set()

    async def make(self, decide: Decision) -> None:
        """Decide a change once all earlier ones are done, write its records, and read them back.

        A caller that is cancelled leaves the change running: the next one waits for its end. Raises what
        `decide` and `write` raise.
        """
        change = asyncio.create_task(self._make(decide), name="change of the config topic")
        self._running.add(change)
        change.add_done_callback(self._ended)
        await asyncio.shield(change)

    async def close(self) -> None:
        """Stop the changes that still run."""
        changes = list(self._running)
        for each in changes:
            each.cancel()
        await asyncio.gather(*changes, return_exceptions=True)

    async def _make(self, decide: Decision) -> None:
        async with self.lock:
            if self._is_uncertain:
                await self._read_to_end()
                self._is_uncertain = False
            if not (records := list(decide())):
                return
            self._is_uncertain = True
            await self._write(records)
            self._is_uncertain = False

    def _ended(self, change: asyncio.Task[None]) -> None:
        self._running.discard(change)
        if not change.cancelled():
            change.exception()  # taken here too, in case the caller was cancelled
