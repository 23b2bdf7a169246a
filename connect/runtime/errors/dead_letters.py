"""The dead letter queue: a topic for records that a task leaves out (KIP-298)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from connect.config import ErrorsConfig
from connect.errors import ConnectError
from connect.runtime.errors.failed_row import ERROR_PREFIX, FailedRow
from connect.runtime.task_metrics import TaskMetrics
from kafka_client import Admin, BatchProducer, Client, NewTopic
from kafka_client.errors import ErrorCode, KafkaError, MillstreamError
from kafka_client.records import NewRecord

_STACK_TRACE = ERROR_PREFIX + "exception.stacktrace"


class DeadLetters:
    """The writer of one task's dead letters. Call `start` before `write`, and `close` at the end."""

    def __init__(
        self,
        connector: str,
        task_id: int,
        config: ErrorsConfig,
        *,
        client: Client,
        admin: Admin,
        producer_arguments: Mapping[str, Any],
        metrics: TaskMetrics,
    ) -> None:
        assert config.dead_letter_topic is not None
        self.topic = config.dead_letter_topic
        self._connector = connector
        self._task_id = task_id
        self._replication_factor = config.errors_deadletterqueue_topic_replication_factor
        self._has_context = config.errors_deadletterqueue_context_headers_enable
        self._client = client
        self._admin = admin
        self._producer = BatchProducer(client, **producer_arguments)
        self._metrics = metrics

    async def start(self) -> None:
        """Create the topic, with one partition, if it does not exist. Raises KafkaError if that fails."""
        if self.topic not in await self._admin.list_topics():
            new = NewTopic(self.topic, 1, self._replication_factor)
            try:
                await self._admin.create_topics([new], exist_ok=True)
            except KafkaError as e:
                raise ConnectError(
                    f"the dead letter queue {self.topic} cannot be created with replication factor "
                    f"{self._replication_factor} (errors.deadletterqueue.topic.replication.factor): {e}"
                ) from e
        await self._producer.start()

    async def write(self, row: FailedRow) -> asyncio.Future[None]:
        """Send a record; waits only for room in the producer. The future is done once it is acknowledged.

        The future fails with ConnectError, and the task has to fail with it, or the record would be lost.
        """
        self._metrics.dead_letters_sent += 1
        return asyncio.ensure_future(self._acknowledged(await self._send(row), row))

    async def close(self) -> None:
        """Stop; what is not acknowledged yet fails."""
        await self._producer.close(timeout_ms=0)

    async def _send(self, row: FailedRow) -> asyncio.Future[int | None]:
        try:
            count = len((await self._client.topic(self.topic)).partitions)
            partition = self._producer.partition_for(self.topic, row.key, count)
            record = self._record(row)
            try:
                return await self._producer.send(self.topic, partition, [record])
            except KafkaError as e:
                if e.code is not ErrorCode.MESSAGE_TOO_LARGE:
                    raise
            return await self._producer.send(self.topic, partition, [_without_stack_trace(record)])
        except MillstreamError as e:
            raise self._refused(row, e) from e

    async def _acknowledged(self, future: asyncio.Future[int | None], row: FailedRow) -> None:
        try:
            await future
        except MillstreamError as e:
            raise self._refused(row, e) from e

    def _record(self, row: FailedRow) -> NewRecord:
        context = row.context_headers(self._connector, self._task_id) if self._has_context else ()
        timestamp = row.timestamp if row.timestamp >= 0 else time.time_ns() // 1_000_000
        return timestamp, row.key, row.value, (*row.headers, *context)

    def _refused(self, row: FailedRow, error: MillstreamError) -> ConnectError:
        self._metrics.dead_letters_failed += 1
        return ConnectError(f"{row} cannot be written to the dead letter queue {self.topic}: {error}")


def _without_stack_trace(record: NewRecord) -> NewRecord:
    """Return a record that its context has made too large for the topic without the largest header of it."""
    timestamp, key, value, headers = record
    return timestamp, key, value, tuple(each for each in headers if each[0] != _STACK_TRACE)
