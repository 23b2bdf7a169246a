"""The writing benchmark: records are handed over a slice at a time, and a slice has one latency."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Protocol, TypeAlias

from kafka_client.errors import MillstreamError
from kafka_client.records import NewRecord
from millstream.commands.bench.latencies import Latencies
from millstream.terminal.progress import Progress

SLICE_BYTES = 16_384
"""Bytes handed over at once, Kafka's `batch.size`: latencies are measured by slices of about a batch."""
TICK_SECONDS = 0.01
"""With --throughput, how often records are handed over."""


_Done: TypeAlias = Callable[[list[NewRecord], asyncio.Future[int | None]], None]
"""A callback with the records sent and the future of their acknowledgement."""


class Producer(Protocol):
    """`BatchProducer`, and `TransactionalProducer` with a transaction open."""

    async def send(
        self, topic: str, partition: int, records: Sequence[NewRecord]
    ) -> asyncio.Future[int | None]: ...

    async def flush(self) -> None: ...

    def partition_for(self, topic: str, key: bytes | None, partition_count: int) -> int: ...


class Window(Latencies):
    """Latencies and bytes of the records acknowledged in a period."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes_sent = 0


class ProduceBench:
    """Writes records and notes how long their acknowledgements take.

    A record's latency begins before it is handed over, so waiting for the buffer counts, as for Kafka's.
    """

    def __init__(
        self, producer: Producer, topic: str, partition_count: int, keys: Iterator[bytes] | None = None
    ) -> None:
        """Make a run. `keys` gives each record's key, which decides the partition."""
        self._producer = producer
        self._topic = topic
        self._count = partition_count
        self._keys = keys
        self.latencies = Latencies()
        self.bytes_sent = 0
        self._window = Window()
        self.seconds = 0.0
        self.steady: Window | None = None
        """The acknowledged records among those handed over since `begin_steady`; None before it."""
        self.steady_seconds = 0.0
        self._steady_since = 0.0
        self.failure: MillstreamError | None = None

    def window(self) -> Window:
        """Return a new window, which counts acknowledgements until the next call."""
        self._window = Window()
        return self._window

    def begin_steady(self) -> None:
        """Count the records handed over from now on in `steady`, too."""
        self.steady = Window()
        self._steady_since = time.perf_counter()

    async def run(self, slices: Iterator[list[bytes]], throughput: float, progress: Progress) -> None:
        """Send all slices at up to `throughput` records a second (0 or less: no limit) and add to the counts.

        Raises the first error of a record that was not acknowledged.
        """
        began = time.perf_counter()
        sent = 0
        for payloads in slices:
            if self.failure is not None:
                break
            if throughput > 0:
                await asyncio.sleep(max(0.0, began + sent / throughput - time.perf_counter()))
            await self._send(payloads, progress)
            sent += len(payloads)
        await self._producer.flush()
        ended = time.perf_counter()
        self.seconds += ended - began
        self.steady_seconds = ended - self._steady_since
        if self.failure is not None:
            raise self.failure

    async def _send(self, payloads: list[bytes], progress: Progress) -> None:
        began = time.perf_counter()
        now_ms = time.time_ns() // 1_000_000
        done = partial(self._done, began, self.steady, progress)
        if self._keys is None:
            number = self._producer.partition_for(self._topic, None, self._count)
            await self._hand_over(number, [(now_ms, None, payload, ()) for payload in payloads], done)
        else:
            for number, records in self._keyed(now_ms, payloads, self._keys).items():
                await self._hand_over(number, records, done)

    def _keyed(self, now_ms: int, payloads: list[bytes], keys: Iterator[bytes]) -> dict[int, list[NewRecord]]:
        """Return the records by the partition of their keys."""
        by_partition: dict[int, list[NewRecord]] = {}
        for payload, key in zip(payloads, keys, strict=False):
            number = self._producer.partition_for(self._topic, key, self._count)
            by_partition.setdefault(number, []).append((now_ms, key, payload, ()))
        return by_partition

    async def _hand_over(self, number: int, records: list[NewRecord], done: _Done) -> None:
        future = await self._producer.send(self._topic, number, records)
        future.add_done_callback(partial(done, records))

    def _done(
        self,
        began: float,
        steady: Window | None,
        progress: Progress,
        records: list[NewRecord],
        future: asyncio.Future[int | None],
    ) -> None:
        if future.cancelled():
            return
        if (error := future.exception()) is not None:
            self.failure = self.failure or (error if isinstance(error, MillstreamError) else None)
            return
        latency_ms, count = (time.perf_counter() - began) * 1000, len(records)
        size = sum(len(record[2] or b"") for record in records)
        self.bytes_sent += size
        self.latencies.note(latency_ms, count)
        for window in (self._window, steady):
            if window is not None:
                window.bytes_sent += size
                window.note(latency_ms, count)
        progress.advance(count)


def slice_size(payloads: list[bytes], throughput: float) -> int:
    """Return how many records are handed over at once."""
    average = max(1, sum(map(len, payloads)) // len(payloads))
    size = max(1, SLICE_BYTES // average)
    return min(size, max(1, int(throughput * TICK_SECONDS))) if throughput > 0 else size
