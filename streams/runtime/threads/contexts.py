"""Contexts shared by the calls of an asynchronous node, such as a session: entered once, left at the end."""

from __future__ import annotations

import asyncio
from typing import Any

from streams.processors.coroutines import Context


class Contexts:
    """The contexts by node. Each is entered and left in one asyncio task, which some contexts require."""

    def __init__(self) -> None:
        self._entered: dict[str, asyncio.Future[Any]] = {}
        self._holders: dict[asyncio.Task[None], asyncio.Future[Any]] = {}
        self._end = asyncio.Event()

    async def entered(self, node: str, context: Context) -> Any:
        """Return the value of ``async with context()``. If entering fails, the next call tries again."""
        if node not in self._entered:
            future = self._entered[node] = asyncio.get_running_loop().create_future()
            holder = asyncio.create_task(self._hold(node, context, future), name=f"context of {node}")
            self._holders[holder] = future
        return await asyncio.shield(self._entered[node])

    def is_entering(self, node: str) -> bool:
        """Return True if the node's context is being entered."""
        return node in self._entered and not self._entered[node].done()

    async def _hold(self, node: str, context: Context, entered: asyncio.Future[Any]) -> None:
        try:
            async with context() as value:
                entered.set_result(value)
                await self._end.wait()
        except Exception as error:
            if entered.done():
                raise
            del self._entered[node]
            entered.set_exception(error)
            entered.exception()  # Marks the error as retrieved, in case no call waits for it.

    async def close(self) -> None:
        """Leave all contexts, and raise the first error of leaving one."""
        self._end.set()
        for holder, entered in self._holders.items():
            if not entered.done():
                holder.cancel()
        results = await asyncio.gather(*self._holders, return_exceptions=True)
        for each in results:
            if isinstance(each, Exception):
                raise each
