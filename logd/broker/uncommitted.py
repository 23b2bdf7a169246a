"""Appends whose acknowledgement waits for the high watermark (acks=all)."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Awaitable

from logd.errors import ErrorCode, error_for


class Uncommitted:
    """One partition's. Each is a request that waits, so connections bound them; a cancelled one is forgotten
    with those before it.
    """

    __slots__ = ("_count", "_waiting")

    def __init__(self) -> None:
        self._count = 0
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        """A heap of (last offset, number, what is waited for): a duplicate waits for an offset of before."""

    def __len__(self) -> int:
        return len(self._waiting)

    def wait_for(self, last_offset: int) -> Awaitable[None]:
        """Done once the high watermark has passed `last_offset`; the caller's alone, who may cancel it.

        Raises KafkaError(NOT_LEADER_OR_FOLLOWER) after `give_up`.
        """
        waiting = self._waiting
        while waiting and waiting[0][2].done():
            heapq.heappop(waiting)
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._count += 1
        heapq.heappush(waiting, (last_offset, self._count, future))
        return future

    def committed_to(self, high_watermark: int) -> None:
        """The high watermark has moved there."""
        waiting = self._waiting
        while waiting and waiting[0][0] < high_watermark:
            _, _, future = heapq.heappop(waiting)
            if not future.done():
                future.set_result(None)

    def give_up(self, message: str) -> None:
        """Nobody here is going to know."""
        for _, _, future in self._waiting:
            if not future.done():
                future.set_exception(error_for(ErrorCode.NOT_LEADER_OR_FOLLOWER, message))
                future.exception()  # nobody may be left to hear of it
        self._waiting.clear()
