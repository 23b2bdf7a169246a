"""Reads committed records of one side within bounds, and notes what cannot be read."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from kafka_client import BatchFetcher, Client, Fetched, TopicPartition
from kafka_client.errors import MillstreamError, OffsetOutOfRange, RequestTimedOut, UnreadableBatch
from kafka_client.fetcher.offsets import EARLIEST, LATEST, list_each_offset
from kafka_client.records import Record
from mirror.verify.comparison import Side, Unreadable
from mirror.verify.pace import Pace

ANSWER_TIMEOUT_MS = 30_000
"""How long a broker may take to say where its partitions begin and end."""
SILENCE_MS = 60_000
"""How long all partitions that are left may give nothing before they count as unreadable."""
FETCH_BYTES_MIN, FETCH_BYTES_MAX = 64 << 10, 1 << 20
BUFFER_BYTES_MAX = 64 << 20

Bounds: TypeAlias = Mapping[TopicPartition, tuple[int, int]]
"""The offsets to read of each partition: the first, and the one after the last."""


class Records(NamedTuple):
    """The next committed records of one partition, in order.

    `gaps` are the indexes in `records` before which something could not be read.
    """

    tp: TopicPartition
    records: Sequence[Record]
    gaps: Sequence[int]


class SideReader:
    """Reads one side's topic. `on_read` is called with the number of offsets that were passed.

    `unreadable` collects what could not be read, by partition.
    """

    def __init__(self, side: Side, client: Client, pace: Pace) -> None:
        self.side = side
        self.client = client
        self.on_read: Callable[[int], None] = lambda offsets: None
        self.unreadable: dict[int, list[Unreadable]] = {}
        self._pace = pace

    async def bounds(self, tps: Iterable[TopicPartition]) -> Bounds:
        """Return where the partitions begin and end now. One without an answer is unreadable."""
        bounds: dict[TopicPartition, tuple[int, int]] = {}
        starts = await self._offsets(tps, EARLIEST)
        ends = await self._offsets(starts, LATEST)
        for tp, start in starts.items():
            if isinstance(start, MillstreamError):
                self._note(Unreadable(self.side, tp, None, None, str(start)))
            elif isinstance(end := ends[tp], MillstreamError):
                self._note(Unreadable(self.side, tp, None, None, str(end)))
            else:
                bounds[tp] = (start, end)
        return bounds

    async def read(self, bounds: Bounds) -> AsyncIterator[Records]:
        """Yield the records within the bounds. What cannot be read is noted and passed over."""
        ends = {tp: end for tp, (start, end) in bounds.items() if start < end}
        async with self._fetcher() as fetcher:
            for tp, end in ends.items():
                fetcher.add(tp, bounds[tp][0], end=end)
            while ends:
                for fetched in await self._fetch(fetcher, ends):
                    if isinstance(fetched, Records):
                        yield fetched
                    elif fetched.tp in ends:
                        for records in self._records(fetched, ends[fetched.tp]):
                            yield records
                        self._passed(fetcher, ends, fetched)
                        await self._pace.take(len(fetched.buffer))

    async def first(self, tp: TopicPartition, offset: int) -> Record | None:
        """Return the record at `offset`, or None if it is not there any more."""
        async for _, records, _ in self.read({tp: (offset, offset + 1)}):
            for record in records:
                return record
        return None

    def _fetcher(self) -> BatchFetcher:
        rate = self._pace.rate
        size = FETCH_BYTES_MAX if rate is None else min(max(rate, FETCH_BYTES_MIN), FETCH_BYTES_MAX)
        return BatchFetcher(
            self.client,
            isolation_level="read_committed",
            max_partition_fetch_bytes=size,
            buffer_max_bytes=BUFFER_BYTES_MAX if rate is None else 2 * size,
        )

    async def _offsets(
        self, tps: Iterable[TopicPartition], which: int
    ) -> dict[TopicPartition, int | MillstreamError]:
        listed = await list_each_offset(
            self.client,
            dict.fromkeys(tps, which),
            isolation_level="read_committed",
            timeout_ms=ANSWER_TIMEOUT_MS,
        )
        return {tp: each if isinstance(each, MillstreamError) else each.offset for tp, each in listed.items()}

    async def _fetch(self, fetcher: BatchFetcher, ends: dict[TopicPartition, int]) -> list[Fetched | Records]:
        """Fetch once. A partition that the broker refuses, or does not answer for, is noted and left."""
        try:
            if fetched := await fetcher.fetch(timeout_ms=SILENCE_MS):
                return list(fetched)
            silent = RequestTimedOut(f"no answer for {SILENCE_MS // 1000} s")
            return [self._refused(fetcher, tp, ends, silent) for tp in list(ends)]
        except MillstreamError as error:
            refused = [tp for tp, each in fetcher.failures().items() if each is error and tp in ends]
            if not refused:
                raise
            return [self._refused(fetcher, tp, ends, error) for tp in refused]

    def _refused(
        self,
        fetcher: BatchFetcher,
        tp: TopicPartition,
        ends: dict[TopicPartition, int],
        error: MillstreamError,
    ) -> Records:
        position, end = fetcher.position(tp), ends[tp]
        after = end
        if isinstance(error, OffsetOutOfRange) and position < error.start:
            # Retention was faster: the rest is still there.
            after = min(error.start, end)
        self._note(Unreadable(self.side, tp, position, after - 1, str(error)))
        self.on_read(after - position)
        if after < end:
            fetcher.seek(tp, after)
        else:
            del ends[tp]
            fetcher.remove(tp)
        return Records(tp, (), (0,))

    def _records(self, fetched: Fetched, end: int) -> Iterable[Records]:
        unreadable: list[UnreadableBatch] = []
        for part in fetched.parts(on_unreadable=unreadable.append):
            records = part.records
            if records and records[-1][0] >= end:
                records = [record for record in records if record[0] < end]
            batches = [batch for batch in unreadable if batch.first_offset < end]
            unreadable.clear()
            for batch in batches:
                self._note(
                    Unreadable(self.side, fetched.tp, batch.first_offset, batch.last_offset, batch.reason)
                )
            gaps = [
                bisect_left(records, batch.first_offset, key=lambda record: record[0]) for batch in batches
            ]
            yield Records(fetched.tp, records, gaps)

    def _passed(self, fetcher: BatchFetcher, ends: dict[TopicPartition, int], fetched: Fetched) -> None:
        end = ends[fetched.tp]
        self.on_read(min(fetched.next_offset, end) - min(fetched.position, end))
        if fetched.next_offset >= end:
            del ends[fetched.tp]
            fetcher.remove(fetched.tp)

    def _note(self, unreadable: Unreadable) -> None:
        noted = self.unreadable.setdefault(unreadable.tp.partition, [])
        if unreadable not in noted:  # a range may be read again
            noted.append(unreadable)
