"""BlockingCalls: functions that may never return, as a plugin's code is called in them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TypeVar

from connect.runtime.calls import PluginCalls

_log = logging.getLogger(__name__)
T = TypeVar("T")


class BlockingCalls:
    """Calls functions, each in a daemon thread of its own, which does not keep the worker from ending.

    `threads_max`: the bound of the calls that have not returned, abandoned or not; further ones wait.
    """

    def __init__(self, name: str, *, threads_max: int) -> None:
        self._name = name
        self._free = asyncio.Semaphore(threads_max)
        self._running: set[asyncio.Task[object]] = set()

    async def call(self, function: Callable[..., T], *args: object) -> T:
        """Return the function's result, and raise its exceptions.

        If the caller is cancelled the call is abandoned: its thread counts until it returns.
        """
        await self._free.acquire()
        running = asyncio.create_task(self._run(function, *args), name=self._name)
        self._running.add(running)
        running.add_done_callback(self._running.discard)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            running.add_done_callback(_drop_outcome)
            _log.warning("%s: a call of a plugin does not return, and is abandoned", self._name)
            raise

    async def _run(self, function: Callable[..., T], *args: object) -> T:
        calls = PluginCalls(self._name)
        try:
            return await calls.call(function, *args)
        finally:
            calls.close()
            self._free.release()


def _drop_outcome(abandoned: asyncio.Task[object]) -> None:
    """Ignore the result of an abandoned call, so that its exception is not logged as never retrieved."""
    if not abandoned.cancelled():
        abandoned.exception()
