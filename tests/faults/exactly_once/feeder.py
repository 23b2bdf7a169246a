"""Writes the input, through kills of the broker; what it wrote is the ledger that the audit goes by."""

from __future__ import annotations

import asyncio
import random
import time

from kafka_client import BatchProducer, Client
from kafka_client.records import NewRecord
from tests.faults.exactly_once.names import INPUT, INPUT_PARTITIONS, KEYS, PATIENCE_MS

PAUSE_SECONDS = 0.05
Pair = tuple[bytes, bytes]


class Feeder:
    """`feed` until `stop`. `written`: key and value, by partition and in order."""

    def __init__(self, seed: int, per_second: int) -> None:
        self.written: list[list[Pair]] = [[] for _ in range(INPUT_PARTITIONS)]
        self._random = random.Random(seed)
        self._each = max(1, round(per_second * PAUSE_SECONDS))
        self._number = 0
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        """Write no more."""
        self._stopped.set()

    async def feed(self, client: Client) -> None:
        """Write a few, wait until they are there, and so on; idempotent, so that each is there once."""
        async with BatchProducer(client, linger_ms=0, delivery_timeout_ms=PATIENCE_MS) as producer:
            while not self._stopped.is_set():
                now = int(time.time() * 1000)  # what is older than a week would be deleted
                batches: list[list[NewRecord]] = [[] for _ in range(INPUT_PARTITIONS)]
                for _ in range(self._each):
                    partition, (key, value) = self._next()
                    self.written[partition].append((key, value))
                    batches[partition].append((now, key, value, ()))
                sent = [await producer.send(INPUT, n, each) for n, each in enumerate(batches) if each]
                await asyncio.gather(*sent)
                await asyncio.sleep(PAUSE_SECONDS)

    def _next(self) -> tuple[int, Pair]:
        key = self._random.randrange(KEYS)
        self._number += 1
        amount = self._random.randrange(1, 1_000_000)
        return key % INPUT_PARTITIONS, (b"key-%d" % key, b"%d %d" % (self._number, amount))
