"""The transactional producer of an instance, and what becomes of it when a transaction fails (KIP-447).

A transaction is begun by whatever is sent first. After a failure nothing is sent until `recover`: it aborts
what is open, or puts a new producer of the same transactional id in the place of one that was fenced or has
failed for good. That ends whatever the earlier one left open, too.
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
"""Where Kafka Streams keeps the process's id, in the application's state folder."""

OPEN_SHARE = 0.5
"""The share of ``transaction.timeout.ms`` after which a transaction that is still open is committed early."""

Offsets = Callable[[], dict[TopicPartition, OffsetAndMetadata]]


def transactional_id(application_id: str, folder: Path) -> str:
    """``<application id>-<process id>-1``: the same after a restart over the same state folder, so that what
    the process before left open is aborted at once, not when its time is up.
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
    """`start` before anything else. ``make`` makes a producer, and another one when that has failed for good.

    ``timeout_ms``: transaction.timeout.ms.
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
        """Take over the transactional id: an earlier process's open transaction is aborted."""
        await self._producer.start()

    def abandon(self) -> None:
        """What is open, or closing, is nobody's any more; nothing can be sent until `recover`."""
        self._failed = True

    async def recover(self) -> None:
        """Nothing is open or failed afterwards. Raises what trying again may mend, or a producer cannot."""
        if not self._failed:
            return
        if self._closing is not None:
            await asyncio.wait([self._closing])
        if self._opened_at is None and (self._closing is None or self._closing.exception() is None):
            self._failed = False  # all that was sent is committed
            return
        try:
            await self._producer.abort()
        except (TransactionError, ConnectionClosed) as error:
            log.warning("%s: a new producer begins: %s", self._producer.transactional_id, error)
            await self._begin_anew()
        self._opened_at, self._closing, self._failed = None, None, False

    async def _begin_anew(self) -> None:
        await self._producer.close(timeout_ms=0)
        producer = self._make()
        try:
            await producer.start()
        except BaseException:
            await producer.close(timeout_ms=0)
            raise
        self._producer = producer

    async def close(self, *, timeout_ms: int | None = None) -> None:
        """Abort what is open, for at most ``timeout_ms``, and stop."""
        if timeout_ms is None:
            await self._producer.close()
        else:
            await self._producer.close(timeout_ms=timeout_ms)

    # -- a transaction

    @property
    def is_open(self) -> bool:
        """Whether something was sent that no commit has been begun for, and that may be committed."""
        return self._opened_at is not None and not self._failed

    @property
    def is_overdue(self) -> bool:
        """Whether a transaction has been open for so long that the coordinator might end it."""
        opened_at = self._opened_at
        return opened_at is not None and self.is_open and self._clock() - opened_at >= self._open_max_ms

    def partitioned(
        self, topic: str, records: Sequence[NewRecord], partition_count: int
    ) -> dict[int, list[NewRecord]]:
        """The records by partition, as Kafka's default partitioner has it."""
        return self._producer.partitioned(topic, records, partition_count)

    async def send(
        self, topic: str, partition: int, records: Sequence[NewRecord]
    ) -> asyncio.Future[int | None]:
        """Send in the open transaction; while one is closing, what is sent waits in the producer's memory."""
        self._begin()
        return await self._producer.send(topic, partition, records)

    async def send_batch(
        self, topic: str, partition: int, batch: bytes | memoryview
    ) -> asyncio.Future[int | None]:
        """As `send`."""
        self._begin()
        return await self._producer.send_batch(topic, partition, batch)

    def _begin(self) -> None:
        assert not self._failed, "recover first: what was abandoned must not be committed"
        if self._opened_at is None:
            self._producer.begin()
            self._opened_at = self._clock()

    async def commit_soon(self, offsets: Offsets, group: GroupMetadata) -> asyncio.Future[None]:
        """Begin to commit the open transaction, or one of offsets alone; done when it is committed.

        ``offsets`` is called when all that was sent is acknowledged.
        """
        self._begin()
        outcome = await self._producer.commit_soon(offsets, group)
        self._opened_at, self._closing = None, outcome
        return outcome
