"""Sending chunks of records through a producer: their partitions, acknowledgements and errors."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Protocol

from kafka_client import partition_for_key
from kafka_client.errors import ErrorCode, KafkaError, MillstreamError
from kafka_client.records import NewRecord, estimate_sizes
from millstream.commands.produce.source import Chunk

MAX_REQUEST_SIZE = 1_048_576
"""Kafka's default of `max.request.size`, and the producer's."""


class Producer(Protocol):
    """`BatchProducer`, and `TransactionalProducer` with a transaction open."""

    async def send(
        self, topic: str, partition: int, records: Sequence[NewRecord]
    ) -> asyncio.Future[int | None]: ...

    def partition_for(self, topic: str, key: bytes | None, partition_count: int) -> int: ...


class Sender:
    """A sender of records to one topic.

    `partition`: their partition; None: by Kafka's default partitioner.
    """

    def __init__(
        self,
        producer: Producer,
        topic: str,
        partition_count: int,
        partition: int | None,
        max_request_size: int,
    ) -> None:
        self._producer = producer
        self._topic = topic
        self._count = partition_count
        self._partition = partition
        self._limit = max_request_size
        self.acknowledged = 0
        self.failed = 0
        self.failure: MillstreamError | None = None
        """The first error of a record that failed, or None."""

    async def send(self, chunk: Chunk) -> None:
        """Queue a chunk's records; wait while the producer's buffer is full.

        Raises the first error of an earlier chunk. Raises KafkaError MESSAGE_TOO_LARGE, which names the line,
        for a record that is too large; the records before it are queued.
        """
        if self.failure is not None:
            raise self.failure
        records = chunk.records
        # A record is about as long as its line: most chunks have no line that long.
        large = self._first_too_large(records) if chunk.longest > self._limit // 2 else None
        for number, group in self._groups(records[:large]):
            future = await self._producer.send(self._topic, number, group)
            future.add_done_callback(partial(self._done, len(group)))
        if large is not None:
            raise KafkaError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"line {chunk.first + large} of {chunk.place}: a record of "
                f"{estimate_sizes(records[large : large + 1])[0]} bytes, max.request.size is {self._limit}: "
                "raise it in --command-config, and the topic's "
                "max.message.bytes",
            )

    def _first_too_large(self, records: list[NewRecord]) -> int | None:
        """Return the position of the first record that exceeds the request size, or None."""
        positions = (at for at, size in enumerate(estimate_sizes(records)) if size > self._limit)
        return next(positions, None)

    def _groups(self, records: list[NewRecord]) -> list[tuple[int, list[NewRecord]]]:
        """Return the records by partition, in order within each partition."""
        if not records:
            return []
        if self._partition is not None:
            return [(self._partition, records)]
        sticky = self._producer.partition_for(self._topic, None, self._count)
        if self._count == 1 or not any(record[1] is not None for record in records):
            return [(sticky, records)]
        groups: dict[int, list[NewRecord]] = {}
        count = self._count
        for record in records:
            key = record[1]
            number = sticky if key is None else partition_for_key(key, count)
            if (group := groups.get(number)) is None:
                group = groups[number] = []
            group.append(record)
        return list(groups.items())

    def _done(self, count: int, future: asyncio.Future[int | None]) -> None:
        if future.cancelled():
            self.failed += count
        elif (error := future.exception()) is None:
            self.acknowledged += count
        else:
            self.failed += count
            if self.failure is None and isinstance(error, MillstreamError):
                self.failure = error
