"""Writes the rows of one task of a micro-batch exactly once: a transaction that Spark may have run again.

Spark repeats a micro-batch under its number until the batch is in the checkpoint, also in a later process.
So a task's rows and a mark that they are written have to be one: the transaction commits an offset for a
group of the task, and the offset is the number of the next batch. A group's offset is read by one request,
however long the query runs, and needs no topic of its own.

1. `open` takes over the transactional id. It fences an older attempt of the task, also in another process,
   and waits for the outcome of its transaction.
2. The group's offset is read. If the batch is done nothing is written.
3. The rows are sent, and committed with the offset.

The transactional id, which is also the group's id, has the query's id and the task's number. It leaves out
the batch's number. Otherwise each batch would leave an id with the coordinator for
`transactional.id.expiration.ms`, a week by default.

What this cannot see: Spark has to divide a repeated batch among its tasks as before. A task that has another
number of rows than it committed fails with `BatchChanged`. And a group's offset expires,
`offsets.retention.minutes` after the task's last batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from kafka_client import Admin, Client, OffsetAndMetadata, TopicPartition, TransactionalProducer


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchTask:
    """A task of a micro-batch: the query's id of the checkpoint, the batch's number, the task's number."""

    query_id: str
    batch_id: int
    task: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """The last batch that a task has committed, and the number of its rows."""

    batch_id: int
    row_count: int


class TaskTransaction:
    """The transaction of one attempt of a task."""

    def __init__(self, client: Client, producer: TransactionalProducer, task: BatchTask) -> None:
        self._client = client
        self.producer = producer
        self._task = task
        self.committed: Committed | None = None
        """The last batch that the task has committed; None if there is none."""

    @classmethod
    async def open(cls, client: Client, task: BatchTask, prefix: str, settings: Mapping[str, Any]) -> Self:
        """Fence earlier attempts, read what they committed, and begin if the batch is not done.

        Raises KafkaError, and ProducerFenced if a newer attempt took the id meanwhile. Call `close` in the
        end.
        """
        transactional_id = f"{prefix}-{task.query_id}-{task.task}"
        producer = TransactionalProducer(client, transactional_id, **settings)
        transaction = cls(client, producer, task)
        try:
            await producer.start()
            await transaction._read_committed()
            if not transaction.is_done:
                producer.begin()
        except BaseException:
            await transaction.close()
            raise
        return transaction

    @property
    def is_done(self) -> bool:
        """True if the batch, or a later one, was committed by this task before."""
        return self.committed is not None and self.committed.batch_id >= self._task.batch_id

    async def commit(self, topic: str, row_count: int) -> None:
        """Commit the rows, with the offset on partition 0 of `topic`. Raises TransactionError."""
        offset = OffsetAndMetadata(self._task.batch_id + 1, metadata=str(row_count))
        await self.producer.commit({TopicPartition(topic, 0): offset}, self.producer.transactional_id)

    async def close(self) -> None:
        """Abort the transaction if it is open, and close the producer."""
        await self.producer.close()

    async def _read_committed(self) -> None:
        """Read the newest offset of the group; the topic of its rows may have changed meanwhile."""
        offsets = await Admin(self._client).list_group_offsets(self.producer.transactional_id)
        if offsets:
            newest = max(offsets.values(), key=lambda committed: committed.offset)
            row_count = int(newest.metadata or 0)
            self.committed = Committed(batch_id=newest.offset - 1, row_count=row_count)
