"""What tasks write through: a `BatchProducer`, or under exactly-once the `Transactions` of the instance."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from kafka_client.records import Codec, NewRecord


class Producer(Protocol):
    """Sends records and built batches to partitions; the futures are done once they are acknowledged."""

    @property
    def codec(self) -> Codec:
        """How batches are compressed."""
        ...

    @property
    def max_request_size(self) -> int:
        """Bytes of the largest record, and batch, that is sent."""
        ...

    def partitioned(
        self, topic: str, records: Sequence[NewRecord], partition_count: int
    ) -> dict[int, list[NewRecord]]:
        """The records by partition, as Kafka's default partitioner has it."""
        ...

    async def send(
        self, topic: str, partition: int, records: Sequence[NewRecord]
    ) -> asyncio.Future[int | None]:
        """Queue records; waits only for room. The future gives the first one's offset."""
        ...

    async def send_batch(
        self, topic: str, partition: int, batch: bytes | memoryview
    ) -> asyncio.Future[int | None]:
        """Queue a batch that is already built."""
        ...
