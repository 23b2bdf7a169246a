"""Reads that would wait for the disk, done in threads: pages are read in, and then the request tries again.

    want a page ──> not in memory ──> job queued ──> run in the pool ──> want it again

At most ``COLD_READS_MAX`` run at one time, so that cold reads leave threads for fsync; the rest wait in turn.
The queue is bounded by the connections, since each serves one request at a time.
"""

from __future__ import annotations

import asyncio
import errno
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from kafka_client.errors import ErrorCode, KafkaError
from logd.broker.work.periodic import report
from logd.storage import NotResident, is_resident, warm
from logd.storage.disk import CACHED_ONLY

if TYPE_CHECKING:
    from logd.broker.partition.partition import Partition
    from logd.storage import Log

Job: TypeAlias = Callable[[], None]
T = TypeVar("T")

COLD_READS_MAX = 4
"""How many requests read from the disk at one time."""
ROUNDS_MAX = 1000
"""How often one request is tried again: looking for a time in a cold log takes a round for every segment."""
READ_IN_BYTES = 1024 * 1024
"""Read in at a time of a log that is going to be replayed."""


class ColdReadRounds:
    """The number of cold reads done for one request, and the last one's error, if any.

    ``of_records`` counts the reads of records, after their place in the log was found; `fetch_attempt`
    counts them.
    """

    rounds = 0  # defaults of the class: hardly any request ever has one
    of_records = 0
    failure: OSError | None = None

    def ended(self, error: OSError | None) -> None:
        """Note the end of a cold read, and its error if it failed."""
        self.rounds += 1
        self.failure = error

    def check(self, partition: Partition) -> None:
        """Raise KafkaError(KAFKA_STORAGE_ERROR) when reading pages in has failed, or was no use too often."""
        if self.failure is not None or self.rounds >= ROUNDS_MAX:
            reason = self.failure or "its pages do not stay in memory"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{partition} cannot be read in: {reason}")


class ColdRead:
    """The read jobs of one request, run in sequence; ``done`` is called with its error, or None."""

    __slots__ = ("done", "jobs")

    def __init__(self, jobs: Sequence[Job], done: Callable[[OSError | None], None]) -> None:
        self.jobs = jobs
        self.done: Callable[[OSError | None], None] | None = done

    def cancel(self) -> None:
        """Drop the jobs that have not begun; nobody waits for the result any more."""
        self.done = None
        self.jobs = ()

    def run(self) -> OSError | None:
        """Run the jobs; called in a thread."""
        try:
            for job in self.jobs:
                job()
        except OSError as error:
            return error
        except Exception as error:
            report("reading pages in", error)
            return OSError(errno.EIO, f"reading pages in failed unexpectedly: {error!r}")
        return None


class ColdReads:
    """The queue of cold reads, run in order in threads."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._queue: deque[ColdRead] = deque()
        self._running = 0
        self._warmed = 0

    def statistics(self) -> dict[str, int]:
        """Return the counts of reads that run (with their bound) or wait, and of those done so far."""
        return {
            "running": self._running,
            "running_max": COLD_READS_MAX,
            "queued": len(self._queue),
            "warmed": self._warmed,
        }

    def start(self, jobs: Sequence[Job], done: Callable[[OSError | None], None]) -> ColdRead:
        """Queue jobs; ``done`` is called once, unless cancelled."""
        warming = ColdRead(jobs, done)
        self._queue.append(warming)
        self._run_next()
        return warming

    async def until_resident(self, read: Callable[[], T]) -> T:
        """Return the result of ``read``, which is called again once the missing pages are in memory.

        ``read`` raises NotResident for pages that are only on disk. Its other errors pass through.
        Raises KafkaError(KAFKA_STORAGE_ERROR) if the pages are not in memory after several rounds.
        """
        for _ in range(ROUNDS_MAX):
            try:
                with CACHED_ONLY:
                    return read()
            except NotResident as cold:
                error = await self._warm(cold.job)
            if error is not None:
                break
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"pages cannot be read in: {error or 'too few stay'}")

    async def read_in(self, log: Log) -> None:
        """Have a whole log in memory, so that replaying it waits for no disk. KafkaError."""
        start, end = log.log_start_offset, log.log_end_offset
        while start < end:
            piece = await self.until_resident(partial(log.reader.read, start, READ_IN_BYTES, upper_bound=end))
            if piece is None:
                return
            if not is_resident(piece):
                error = await self._warm(partial(warm, piece))
                if error is not None:
                    raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"a log cannot be read in: {error}")
            behind = await self.until_resident(partial(log.reader.end_of, piece, start))
            start = max(behind, start + 1)

    async def _warm(self, job: Job) -> OSError | None:
        warm: asyncio.Future[OSError | None] = asyncio.get_running_loop().create_future()
        warming = self.start([job], warm.set_result)
        try:
            return await warm
        finally:
            warming.cancel()

    def _run_next(self) -> None:
        while self._queue and self._running < COLD_READS_MAX:
            warming = self._queue.popleft()
            if warming.done is None:
                continue
            self._running += 1
            future = asyncio.get_running_loop().run_in_executor(self._executor, warming.run)
            future.add_done_callback(lambda future, warming=warming: self._ended(warming, future))  # type: ignore[misc]

    def _ended(self, warming: ColdRead, future: asyncio.Future[OSError | None]) -> None:
        self._running -= 1
        self._warmed += 1
        self._run_next()  # first, so that the next one begins whatever becomes of this one
        done = warming.done
        if done is not None and not future.cancelled():
            done(future.result())
