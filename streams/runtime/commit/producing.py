"""The producer of tasks: a `BatchProducer`, or for exactly-once the instance's `Transactions`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from kafka_client.records import Codec, NewRecord


class Producer(Protocol):
    """A sender of records and built batches. Its futures are done once the broker has acknowledged them."""

    @property
    def codec(self) -> Codec:
        """The compression of batches."""
        ...

    @property
    def max_request_size(self) -> int:
        """The largest size of a record and of a batch, in bytes."""
        ...

    def partitioned(
        self, topic: str, records: Sequence[NewRecord], partition_count: int
    ) -> dict[int, list[NewRecord]]:
        """Return the records by partition, chosen as by Kafka's default partitioner."""
        ...

    async def send(
        self, topic: str, partition: int, records: Sequence[NewRecord]
    ) -> asyncio.Future[int | None]:
        """Queue records. Waits only for room. The future's result is the first record's offset."""
        ...

    async def send_batch(
        self, topic: str, partition: int, batch: bytes | memoryview
    ) -> asyncio.Future[int | None]:
        """Queue a batch that is already built."""
        ...
