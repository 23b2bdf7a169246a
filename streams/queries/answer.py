"""`Answer` and `Rows`: what queries give, to be awaited in an event loop or waited for in another thread."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from streams.errors import QueryTimedOut, StreamsError
from streams.queries.query import Page, Row

T = TypeVar("T")
U = TypeVar("U")


class Answer(Generic[T]):
    """Comes once the store's thread has read it, which is between two records.

    ``await answer`` in an event loop, ``answer.result(timeout)`` in another thread.
    """

    def __init__(self, future: Future[T]) -> None:
        self._future = future

    def __await__(self) -> Generator[Any, None, T]:
        return asyncio.wrap_future(self._future).__await__()

    def result(self, timeout: float | None = None) -> T:
        """Wait for it, ``timeout`` seconds at most.

        Raises QueryTimedOut if it has not come by then: a function of the topology holds the thread up.
        """
        if asyncio._get_running_loop() is not None:
            raise StreamsError(
                "in an event loop a query's answer is awaited: its result() would stop the loop"
            )
        try:
            return self._future.result(timeout)
        except TimeoutError:
            self._future.cancel()
            raise QueryTimedOut(timeout or 0) from None

    def then(self, use: Callable[[T], U]) -> Answer[U]:
        """The answer of ``use``, called with this one."""
        used: Future[U] = Future()

        def come(future: Future[T]) -> None:
            if not used.set_running_or_notify_cancel():
                return
            try:
                used.set_result(use(future.result()))
            except BaseException as error:
                used.set_exception(error)

        self._future.add_done_callback(come)
        return Answer(used)


class Rows(Generic[T]):
    """Rows of one partition after the other, read a page at a time: ``async for`` in an event loop, ``for``
    in another thread. What changes meanwhile is seen or not.
    """

    def __init__(
        self,
        partitions: Callable[[], Answer[list[int]]],
        page: Callable[[int, bytes | None], Answer[Page]],
        use: Callable[[Row], T],
    ) -> None:
        self._partitions = partitions
        self._page = page
        self._use = use

    def __iter__(self) -> Iterator[T]:
        for partition in self._partitions().result():
            page = self._page(partition, None).result()
            yield from map(self._use, page.rows)
            while page.next is not None:
                page = self._page(partition, page.next).result()
                yield from map(self._use, page.rows)

    async def __aiter__(self) -> AsyncIterator[T]:
        for partition in await self._partitions():
            page = await self._page(partition, None)
            for row in page.rows:
                yield self._use(row)
            while page.next is not None:
                page = await self._page(partition, page.next)
                for row in page.rows:
                    yield self._use(row)

    async def to_list(self) -> list[T]:
        """All of them."""
        return [row async for row in self]
