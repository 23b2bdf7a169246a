"""What calls of asynchronous nodes share, such as a session: entered at the first call, left at the end."""

from __future__ import annotations

import asyncio
from typing import Any

from streams.processors.coroutines import Context


class Contexts:
    """By node. Each is entered and left in a task of its own, as some require; all in one event loop."""

    def __init__(self) -> None:
        self._entered: dict[str, asyncio.Future[Any]] = {}
        self._holders: dict[asyncio.Task[None], asyncio.Future[Any]] = {}
        self._end = asyncio.Event()

    async def entered(self, node: str, context: Context) -> Any:
        """What ``async with context()`` gives; if that fails, the next call tries again."""
        if node not in self._entered:
            future = self._entered[node] = asyncio.get_running_loop().create_future()
            holder = asyncio.create_task(self._hold(node, context, future), name=f"context of {node}")
            self._holders[holder] = future
        return await asyncio.shield(self._entered[node])

    def is_entering(self, node: str) -> bool:
        """Whether the node's context is waited for."""
        return node in self._entered and not self._entered[node].done()

    async def _hold(self, node: str, context: Context, entered: asyncio.Future[Any]) -> None:
        try:
            async with context() as given:
                entered.set_result(given)
                await self._end.wait()
        except Exception as error:
            if entered.done():
                raise
            del self._entered[node]
            entered.set_exception(error)
            entered.exception()  # Whether a call still waits for it does not matter.

    async def close(self) -> None:
        """Leave all of them, and enter none any more; raises what the first of them raises."""
        self._end.set()
        for holder, entered in self._holders.items():
            if not entered.done():
                holder.cancel()
        left = await asyncio.gather(*self._holders, return_exceptions=True)
        for each in left:
            if isinstance(each, Exception):
                raise each
