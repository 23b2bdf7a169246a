"""One `send`, until what it brought is acknowledged."""

from __future__ import annotations

import asyncio

from kafka_client.errors import MillstreamError


class Delivery:
    """One `send`: its future is done when the sender has let go and all the batches it was spread over are
    acked.
    """

    __slots__ = ("_answered", "_offset", "_pending", "future", "is_queued")

    def __init__(self, future: asyncio.Future[int | None]) -> None:
        self.future = future
        self.is_queued = False
        """Whether a batch has, or had, records of it."""
        self._pending = 1
        self._answered = False
        self._offset: int | None = None

    def hold(self) -> None:
        """One more batch has records of it."""
        self._pending += 1
        self.is_queued = True

    def release(self) -> None:
        """The sender has queued all, or one batch is in the log."""
        self._pending -= 1
        if self._pending == 0 and not self.future.done():
            self.future.set_result(self._offset)

    def acked(self, offset: int | None) -> None:
        """One of its batches is in the log; the first one's offset is the result."""
        if not self._answered:
            self._answered, self._offset = True, offset
        self.release()

    def failed(self, error: MillstreamError) -> None:
        """One of its batches is given up."""
        if not self.future.done():
            self.future.set_exception(error)
