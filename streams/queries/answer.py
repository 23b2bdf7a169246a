"""`Answer` and `Rows`: results of queries, to await in an event loop or to wait for in another thread."""

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
    """The future result of a query: the store's thread reads it between two records.

    Use ``await answer`` in an event loop, ``answer.result(timeout)`` in another thread.
    """

    def __init__(self, future: Future[T]) -> None:
        self._future = future

    def __await__(self) -> Generator[Any, None, T]:
        return asyncio.wrap_future(self._future).__await__()

    def result(self, timeout: float | None = None) -> T:
        """Wait for the result, ``timeout`` seconds at most.

        Raises QueryTimedOut after that: a function of the topology keeps the thread busy.
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
        """Return an answer whose result is ``use`` of this one's."""
        next_future: Future[U] = Future()

        def on_done(future: Future[T]) -> None:
            if not next_future.set_running_or_notify_cancel():
                return
            try:
                next_future.set_result(use(future.result()))
            except BaseException as error:
                next_future.set_exception(error)

        self._future.add_done_callback(on_done)
        return Answer(next_future)


class Rows(Generic[T]):
    """The rows of all partitions, one partition after the other, read a page at a time.

    Use ``async for`` in an event loop, ``for`` in another thread. Changes during the iteration may or may not
    be seen.
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
        """Return all rows as a list."""
        return [row async for row in self]
