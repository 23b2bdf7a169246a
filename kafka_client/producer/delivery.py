"""A call of `send`, until its records are acknowledged."""

from __future__ import annotations

import asyncio

from kafka_client.errors import MillstreamError


class Delivery:
    """A call of `send`.

    Its future is done when the call has queued all its records and every batch with some of them is acked.
    """

    __slots__ = ("_answered", "_offset", "_pending", "future", "is_queued")

    def __init__(self, future: asyncio.Future[int | None]) -> None:
        self.future = future
        self.is_queued = False
        """True once a batch has records of this `send`."""
        self._pending = 1
        self._answered = False
        self._offset: int | None = None

    def hold(self) -> None:
        """Count one more batch with records of this `send`."""
        self._pending += 1
        self.is_queued = True

    def release(self) -> None:
        """Count one part as done: the queueing of all records, or a batch in the log."""
        self._pending -= 1
        if self._pending == 0 and not self.future.done():
            self.future.set_result(self._offset)

    def acked(self, offset: int | None) -> None:
        """Count a batch as in the log; the first one's offset is the result."""
        if not self._answered:
            self._answered, self._offset = True, offset
        self.release()

    def failed(self, error: MillstreamError) -> None:
        """Fail the future with the error of a batch that is given up."""
        if not self.future.done():
            self.future.set_exception(error)
