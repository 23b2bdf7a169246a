"""Repeats a connector's look for new topics or groups. A failure is logged and delays the work only."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from kafka_client.errors import MillstreamError

log = logging.getLogger(__name__)


class Refresh:
    """A task of the event loop that calls `work` every `seconds`. Call `start`, then `stop`."""

    def __init__(self, name: str, seconds: float, work: Callable[[], Awaitable[None]]) -> None:
        self._name = name
        self._seconds = seconds
        self._work = work
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin; the first call of `work` comes after `seconds`."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """End, and wait for the end."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._seconds)
            try:
                await self._work()
            except MillstreamError as e:
                log.warning("%s: could not look, trying again in %.0f s: %s", self._name, self._seconds, e)
