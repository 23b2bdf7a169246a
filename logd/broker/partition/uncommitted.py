"""Appends whose acknowledgement waits for the high watermark (acks=all)."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Generator

from kafka_client.errors import ErrorCode, KafkaError, error_for


class Commit:
    """An append that waits until the high watermark has passed it. Its owner alone may await it, or `then`.

    A produce request has one for each of its partitions, so it calls back without the event loop's help.
    """

    __slots__ = ("_call", "error", "is_done")

    def __init__(self) -> None:
        self.is_done = False
        self.error: KafkaError | None = None
        """NOT_LEADER_OR_FOLLOWER if nobody here is going to know."""
        self._call: Callable[[Commit], None] | None = None

    def then(self, call: Callable[[Commit], None]) -> None:
        """Call `call` when the append is committed, or is known to be lost here; at once if it is so already.

        `call` runs inside of whatever moved the high watermark, and must not raise.
        """
        if self.is_done:
            call(self)
        else:
            self._call = call

    def end(self, error: KafkaError | None = None) -> None:
        """Note that the append is committed, or why nobody here is going to know."""
        if not self.is_done:
            self.is_done, self.error = True, error
            call, self._call = self._call, None
            if call is not None:
                call(self)

    def cancel(self) -> None:
        """Forget it: nobody is called any more."""
        self.is_done, self._call = True, None

    def __await__(self) -> Generator[object, None, None]:
        """Wait for it. Raises KafkaError(NOT_LEADER_OR_FOLLOWER)."""
        if not self.is_done:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.then(lambda _: None if future.done() else future.set_result(None))
            try:
                yield from future
            finally:
                self.is_done = True
        if self.error is not None:
            raise self.error


class Uncommitted:
    """The commits of a partition's produce requests that wait for the high watermark.

    Each belongs to a request that waits, so the connections bound their number. A cancelled one is dropped
    together with the commits of smaller offsets.
    """

    __slots__ = ("_count", "_waiting")

    def __init__(self) -> None:
        self._count = 0
        self._waiting: list[tuple[int, int, Commit]] = []
        """A heap of (last offset, number, what is waited for): a duplicate waits for an offset of before."""

    def __len__(self) -> int:
        return len(self._waiting)

    def wait_for(self, last_offset: int) -> Commit:
        """Return a commit that ends when the high watermark passes `last_offset`, or in `fail_all`."""
        waiting = self._waiting
        while waiting and waiting[0][2].is_done:
            heapq.heappop(waiting)
        commit = Commit()
        self._count += 1
        heapq.heappush(waiting, (last_offset, self._count, commit))
        return commit

    def committed_to(self, high_watermark: int) -> None:
        """End the commits below the high watermark."""
        waiting = self._waiting
        while waiting and waiting[0][0] < high_watermark:
            heapq.heappop(waiting)[2].end()

    def fail_all(self, message: str) -> None:
        """Fail all commits with NOT_LEADER_OR_FOLLOWER and `message`, in the event loop's next turn.

        They fail then and not at once because the partition's role is just changing, and the response is to
        name the new leader.
        """
        error = error_for(ErrorCode.NOT_LEADER_OR_FOLLOWER, message)
        waiting, self._waiting = self._waiting, []
        for _, _, commit in waiting:
            if not commit.is_done:
                asyncio.get_running_loop().call_soon(commit.end, error)
