"""The writing benchmark: records are handed over a slice at a time, and a slice has one latency."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Protocol

from logd.errors import MillstreamError
from logd.records import NewRecord
from millstream.bench.latencies import Latencies
from millstream.terminal.progress import Progress

SLICE_BYTES = 16_384
"""Bytes handed over at once, Kafka's `batch.size`: what is measured is not finer than batches are."""
TICK_SECONDS = 0.01
"""With --throughput, how often records are handed over."""


class Producer(Protocol):
    """`BatchProducer`, and `TransactionalProducer` with a transaction open."""

    async def send(
        self, topic: str, partition: int, records: Sequence[NewRecord]
    ) -> asyncio.Future[int | None]: ...

    async def flush(self) -> None: ...

    def partition_for(self, topic: str, key: bytes | None, partition_count: int) -> int: ...


class Window(Latencies):
    """What was acknowledged within some time."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes_sent = 0


class ProduceBench:
    """Writes records and notes how long their acknowledgements take.

    A record's latency begins before it is handed over, so waiting for the buffer counts, as for Kafka's.
    """

    def __init__(self, producer: Producer, topic: str, partition_count: int) -> None:
        self._producer = producer
        self._topic = topic
        self._count = partition_count
        self.latencies = Latencies()
        self.bytes_sent = 0
        self._window = Window()
        self.seconds = 0.0
        self.failure: MillstreamError | None = None

    def window(self) -> Window:
        """A new one, which counts until the next is asked for."""
        self._window = Window()
        return self._window

    async def run(self, slices: Iterator[list[bytes]], throughput: float, progress: Progress) -> None:
        """Send all slices, besides those of earlier runs: at most `throughput` records a second (0 or less:
        as fast as it goes).

        Raises the first error of what was not acknowledged.
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
        self.seconds += time.perf_counter() - began
        if self.failure is not None:
            raise self.failure

    async def _send(self, payloads: list[bytes], progress: Progress) -> None:
        began = time.perf_counter()
        now_ms = time.time_ns() // 1_000_000
        records: list[NewRecord] = [(now_ms, None, payload, ()) for payload in payloads]
        number = self._producer.partition_for(self._topic, None, self._count)
        future = await self._producer.send(self._topic, number, records)
        future.add_done_callback(partial(self._done, began, payloads, progress))

    def _done(
        self, began: float, payloads: list[bytes], progress: Progress, future: asyncio.Future[int | None]
    ) -> None:
        if future.cancelled():
            return
        if (error := future.exception()) is not None:
            self.failure = self.failure or (error if isinstance(error, MillstreamError) else None)
            return
        latency_ms, size = (time.perf_counter() - began) * 1000, sum(map(len, payloads))
        for counted in (self, self._window):
            counted.bytes_sent += size
        for latencies in (self.latencies, self._window):
            latencies.note(latency_ms, len(payloads))
        progress.advance(len(payloads))


def slice_size(payloads: list[bytes], throughput: float) -> int:
    """Records to hand over at once."""
    average = max(1, sum(map(len, payloads)) // len(payloads))
    size = max(1, SLICE_BYTES // average)
    return min(size, max(1, int(throughput * TICK_SECONDS))) if throughput > 0 else size
