"""The pipeline of requests to ZooKeeper: bounded, ordered, and answered in the loop.

kazoo answers in its threads. A deque collects the answers, and the loop is woken once for all answers that
arrive until it runs.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from logd.metadata.zookeeper.errors import SessionExpired, ZooKeeperError
from logd.metadata.zookeeper.session.client import Client
from logd.metadata.zookeeper.session.operations import Create, Delete, Multi, Operation, SetData

WAITING_MAX: Final = 10_000
"""Requests that may wait for their turn (`zookeeper-requests`), at most; further requests are refused."""


class _Request:
    __slots__ = ("client", "future", "is_write", "sent_at")

    def __init__(
        self, client: Client, future: asyncio.Future[Any], sent_at: float, *, is_write: bool
    ) -> None:
        self.client = client
        self.future = future
        self.sent_at = sent_at
        self.is_write = is_write


class Pipeline:
    """A pipeline of requests, for the loop in which it is created.

    It calls `written` with the client and the send time of each write that succeeded.
    """

    def __init__(
        self, in_flight_max: int, clock: Callable[[], float], written: Callable[[Client, float], None]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._clock = clock
        self._written = written
        self._turn = asyncio.Semaphore(in_flight_max)
        self._in_flight: set[_Request] = set()
        self._answers: deque[tuple[_Request, object, Exception | None]] = deque()
        self._is_woken = False
        self.waiting = 0
        self.sent = 0

    @property
    def in_flight(self) -> int:
        """The number of requests without an answer."""
        return len(self._in_flight)

    async def ask(self, client: Client, operation: Operation) -> Any:
        """Return the answer to a request.

        Raises the operation's errors, ConnectionLost, NotAllowed and MultiFailed. Raises ZooKeeperError if
        too many requests wait.
        """
        if self.waiting >= WAITING_MAX:
            raise ZooKeeperError(
                f"{WAITING_MAX} requests wait for ZooKeeper already: it answers too slowly, or "
                "zookeeper.max.in.flight.requests is too small"
            )
        self.waiting += 1
        try:
            await self._turn.acquire()
        finally:
            self.waiting -= 1
        try:
            return await self.ask_at_once(client, operation)
        finally:
            self._turn.release()

    async def ask_at_once(self, client: Client, operation: Operation) -> Any:
        """Return the answer to a request that is sent ahead of waiting ones.

        Only the request that renews the lease uses this method.
        """
        is_write = isinstance(operation, Create | SetData | Delete | Multi)
        request = _Request(client, self._loop.create_future(), self._clock(), is_write=is_write)
        self._in_flight.add(request)
        self.sent += 1
        try:
            client.submit(operation, lambda answer, error: self._put(request, answer, error))
            return await request.future
        finally:
            self._in_flight.discard(request)

    def fail(self, client: Client) -> None:
        """Fail the pending requests of a closed client, which will not answer them."""
        for request in list(self._in_flight):
            if request.client is client and not request.future.done():
                request.future.set_exception(SessionExpired("the session with ZooKeeper is over"))

    def _put(self, request: _Request, answer: object, error: Exception | None) -> None:
        """Queue an answer, in kazoo's thread; there may be two answers to one request."""
        self._answers.append((request, answer, error))
        if not self._is_woken:
            self._is_woken = True
            try:
                self._loop.call_soon_threadsafe(self._take)
            except RuntimeError:
                # The loop is closed, so no caller waits for the answer.
                return

    def _take(self) -> None:
        self._is_woken = False
        while self._answers:
            request, answer, error = self._answers.popleft()
            if error is None and request.is_write:
                self._written(request.client, request.sent_at)
            if request.future.done():
                continue
            if error is None:
                request.future.set_result(answer)
            else:
                request.future.set_exception(error)
