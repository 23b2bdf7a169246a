"""The loop from a source to a producer, with its progress and the report at its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import suppress
from typing import Any, Protocol

from kafka_client import BatchProducer, TransactionalProducer
from kafka_client.errors import MillstreamError
from millstream.commands.produce.sending import Sender
from millstream.commands.produce.source import Chunk
from millstream.data_types.data_type import WrongData
from millstream.terminal.plural import counted
from millstream.terminal.progress import Progress
from millstream.terminal.status import Partly

FLUSH_SECONDS = 10.0
"""How long records that were read may take to be acknowledged after Ctrl-C."""


class Source(Protocol):
    """`LineSource` and `FileSource`."""

    @property
    def total(self) -> int | None: ...

    def stop(self) -> None: ...

    def __iter__(self) -> Iterator[Chunk]: ...


async def chunks(source: Source) -> AsyncIterator[Chunk]:
    """Yield the source's chunks, read in a thread that ends before this iterator does."""
    iterator = iter(source)
    while True:
        reading = asyncio.ensure_future(asyncio.to_thread(next, iterator, None))
        try:
            chunk = await asyncio.shield(reading)
        except asyncio.CancelledError:
            source.stop()
            await asyncio.wait([reading])
            raise
        if chunk is None:
            return
        yield chunk


class Producing:
    """A run that sends all records of `source` through `sender`."""

    def __init__(
        self, source: Source, sender: Sender, tell: Callable[[str], None], *, skip_errors: bool
    ) -> None:
        self._source = source
        self._sender = sender
        self._tell = tell
        self._skip = skip_errors
        self._skipped = 0
        self._handed_over = 0

    async def plainly(self, producer: BatchProducer, progress: Progress) -> None:
        """Send all records. Raises Partly if only some were acknowledged, and the first error if none was.

        The text of Partly gives their number and the error.
        """
        try:
            await self._send_all(progress)
            await producer.flush()
        except asyncio.CancelledError:
            await within(producer.flush(), FLUSH_SECONDS)
            self._tell(f"interrupted after {counted(self._sender.acknowledged, 'record')} sent")
            raise
        except MillstreamError as error:
            await within(producer.flush(), FLUSH_SECONDS)
            self._raise_with_count(error)
        finally:
            # The default close would wait for an unreachable broker.
            await producer.close(timeout_ms=0)
        if self._sender.failure is not None:
            self._raise_with_count(self._sender.failure)
        self._tell_skipped()

    async def in_transaction(self, producer: TransactionalProducer, progress: Progress) -> None:
        """Send all records and commit them; abort the transaction after any error."""
        producer.begin()
        try:
            await self._send_all(progress)
            await producer.commit()
        except BaseException:
            await within(producer.abort(), FLUSH_SECONDS)
            self._tell("the transaction was aborted: nothing was sent")
            raise
        self._tell_skipped()

    async def _send_all(self, progress: Progress) -> None:
        async for chunk in chunks(self._source):
            await self._sender.send(chunk)
            self._handed_over += len(chunk.records)
            progress.advance(chunk.size if self._source.total is not None else len(chunk.records))
            if chunk.error is None:
                continue
            if not self._skip:
                raise WrongData(chunk.error)
            self._skipped += 1
            self._tell(chunk.error)

    def _raise_with_count(self, error: MillstreamError) -> None:
        acknowledged = self._sender.acknowledged
        if not acknowledged:
            raise error
        lost = f", {self._sender.failed} failed" if self._sender.failed else ""
        raise Partly(f"{error}. Sent before it: {counted(acknowledged, 'record')}{lost}") from error

    def _tell_skipped(self) -> None:
        if self._skipped:
            raise Partly(
                f"{counted(self._skipped, 'line')} left out, see above; "
                f"{counted(self._handed_over, 'record')} sent"
            )


async def within(work: Coroutine[Any, Any, None], seconds: float) -> None:
    """Await `work` for at most `seconds`. Its errors are dropped, so that they do not hide the first one."""
    with suppress(MillstreamError, RuntimeError, TimeoutError):
        async with asyncio.timeout(seconds):
            await work
