"""The transactional producer of an instance, and what becomes of it when a transaction fails (KIP-447).

The first send begins a transaction. After a failure nothing is sent until `recover`, which aborts the open
transaction. A producer that was fenced or has failed for good is replaced by a new one. The new one
has the same transactional id, and so ends the old producer's transaction too.
"""

from __future__ import annotations

import asyncio
import json
import logging
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

from kafka_client import GroupMetadata, OffsetAndMetadata, TopicPartition, TransactionalProducer
from kafka_client.errors import ConnectionClosed, TransactionError
from kafka_client.records import Codec, NewRecord
from streams.errors import StateError
from streams.runtime.task.environment import Clock

log = logging.getLogger(__name__)

PROCESS_FILE = "kafka-streams-process-metadata"
"""The file with the process's id in the state folder, as in Kafka Streams."""

OPEN_SHARE = 0.5
"""The share of ``transaction.timeout.ms`` after which a transaction that is still open is committed early."""

Offsets = Callable[[], dict[TopicPartition, OffsetAndMetadata]]


def transactional_id(application_id: str, folder: Path) -> str:
    """Return ``<application id>-<process id>-1``, which stays the same as long as the state folder does.

    So a transaction that the process before left open is aborted at once, not at its timeout. Raises
    StateError if the process's id cannot be written.
    """
    file = folder / PROCESS_FILE
    try:
        process_id = str(uuid.UUID(json.loads(file.read_text())["processId"]))
    except (OSError, ValueError, KeyError, TypeError):
        process_id = str(uuid.uuid4())
        try:
            file.write_text(json.dumps({"processId": process_id}))
        except OSError as error:
            raise StateError(f"{file} cannot be written: {error}") from error
    return f"{application_id}-{process_id}-1"


class Transactions:
    """The transactions of one instance; call `start` first.

    ``make`` creates a producer, and another one if that fails for good. ``timeout_ms``:
    transaction.timeout.ms.
    """

    def __init__(
        self,
        make: Callable[[], TransactionalProducer],
        *,
        clock: Clock,
        timeout_ms: int,
        codec: Codec,
        max_request_size: int,
    ) -> None:
        self.codec = codec
        self.max_request_size = max_request_size
        self._make = make
        self._clock = clock
        self._open_max_ms = int(timeout_ms * OPEN_SHARE)
        self._producer = make()
        self._opened_at: int | None = None
        self._failed = False
        self._closing: asyncio.Future[None] | None = None

    # -- life

    async def start(self) -> None:
        """Take over the transactional id, which aborts an earlier process's open transaction."""
        await self._producer.start()

    def abandon(self) -> None:
        """Give up the open or closing transaction. Nothing can be sent until `recover`."""
        self._failed = True

    async def recover(self) -> None:
        """End an abandoned transaction, with a new producer if necessary.

        Raises TransactionError or ConnectionClosed if a new producer does not start; call it again then.
        """
        if not self._failed:
            return
        if self._closing is not None:
            await asyncio.wait([self._closing])
        if self._opened_at is None and (self._closing is None or self._closing.exception() is None):
            self._failed = False  # Everything sent is committed.
            return
        try:
            await self._producer.abort()
        except (TransactionError, ConnectionClosed) as error:
            log.warning("%s: a new producer begins: %s", self._producer.transactional_id, error)
            await self._replace_producer()
        self._opened_at, self._closing, self._failed = None, None, False

    async def _replace_producer(self) -> None:
        await self._producer.close(timeout_ms=0)
        producer = self._make()
        try:
            await producer.start()
        except BaseException:
            await producer.close(timeout_ms=0)
            raise
        self._producer = producer

    async def close(self, *, timeout_ms: int | None = None) -> None:
        """Abort the open transaction, for at most ``timeout_ms``, and stop."""
        if timeout_ms is None:
            await self._producer.close()
        else:
            await self._producer.close(timeout_ms=timeout_ms)

    # -- a transaction

    @property
    def is_open(self) -> bool:
        """True if records were sent since the last commit was begun, and they may be committed."""
        return self._opened_at is not None and not self._failed

    @property
    def is_overdue(self) -> bool:
        """True if a transaction has been open for so long that the coordinator might end it."""
        opened_at = self._opened_at
        return opened_at is not None and self.is_open and self._clock() - opened_at >= self._open_max_ms

    def partitioned(
        self, topic: str, records: Sequence[NewRecord], partition_count: int
    ) -> dict[int, list[NewRecord]]:
        """Return the records by partition, chosen as by Kafka's default partitioner."""
        return self._producer.partitioned(topic, records, partition_count)

    async def send(
        self, topic: str, partition: int, records: Sequence[NewRecord]
    ) -> asyncio.Future[int | None]:
        """Send records in the open transaction. While one is closing, they wait in the producer's memory."""
        self._begin()
        return await self._producer.send(topic, partition, records)

    async def send_batch(
        self, topic: str, partition: int, batch: bytes | memoryview
    ) -> asyncio.Future[int | None]:
        """Send a batch that is already built, in the open transaction; see `send`."""
        self._begin()
        return await self._producer.send_batch(topic, partition, batch)

    def _begin(self) -> None:
        assert not self._failed, "recover first: what was abandoned must not be committed"
        if self._opened_at is None:
            self._producer.begin()
            self._opened_at = self._clock()

    async def commit_soon(self, offsets: Offsets, group: GroupMetadata) -> asyncio.Future[None]:
        """Begin to commit the open transaction, or a new one of offsets alone. The future is done at its end.

        ``offsets`` is called when all that was sent is acknowledged.
        """
        self._begin()
        outcome = await self._producer.commit_soon(offsets, group)
        self._opened_at, self._closing = None, outcome
        return outcome
