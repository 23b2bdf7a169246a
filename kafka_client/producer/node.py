"""Sending batches to one broker: several partitions in a request, several requests in flight."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass
from typing import Protocol

from kafka_client.cluster.answers import about
from kafka_client.cluster.cluster import Client, is_retriable
from kafka_client.cluster.connection import Connection
from kafka_client.cluster.versions import highest_common
from kafka_client.errors import (
    ErrorCode,
    KafkaError,
    MillstreamError,
    RecordsRefused,
    StaleMetadata,
    error_for,
)
from kafka_client.producer.accumulator import STATE_LOST, PartitionQueue
from kafka_client.producer.backlog import Backlog
from kafka_client.producer.batch import PendingBatch
from kafka_client.producer.due import DueQueues
from kafka_client.producer.producer_metrics import ProducerMetrics
from kafka_client.records import Codec
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire import ApiKey, decode, decode_response_header
from kafka_client.wire.messages.produce import PartitionProduceResponse, ProduceResponse
from kafka_client.wire.produce import VERSIONS, Buffer, Topic, encode_produce_request

Sent = list[tuple[PartitionQueue, PendingBatch]]

SPLITTABLE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)
"""Errors of a topic that accepts only smaller batches: halves may fit."""

COMPLETING_SECONDS = 0.01
"""Pause before a retry while the previous transaction's markers are being written."""

REFUSED_RECORDS = (ErrorCode.INVALID_RECORD, ErrorCode.INVALID_TIMESTAMP)
"""Errors that name the refused records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceSettings:
    """Settings of the senders to all brokers; see `BatchProducer`. `linger` is in seconds."""

    acks: int
    codec: Codec
    compression_level: int | None
    linger: float
    max_request_size: int
    max_in_flight: int
    max_in_flight_per_partition: int


class ProduceDirector(Protocol):
    """A handler of the errors that sending again cannot solve."""

    def look_up(self, queue: PartitionQueue) -> None:
        """Look up the leader of a partition that has moved."""

    def answered(self) -> None:
        """Note that batches are no longer in flight."""

    def crashed(self, error: BaseException) -> None:
        """Note that a bug ended a task."""


class ProduceNode:
    """A sender to one broker: a task that packs and sends due batches, and a task per request in flight.

    At most `max_in_flight` requests are in flight, each with at most one batch of a partition. The cost of
    a turn depends on the partitions with a batch to send, not on the number of partitions.
    """

    def __init__(
        self,
        client: Client,
        node: int,
        *,
        lane: str,
        settings: ProduceSettings,
        backlog: Backlog,
        director: ProduceDirector,
        metrics: ProducerMetrics,
    ) -> None:
        self.task: asyncio.Task[None] | None = None
        self._metrics = metrics
        self._client = client
        self._node = node
        self._lane = lane
        self._settings = settings
        self._backlog = backlog
        self._director = director
        self._woken = asyncio.Event()
        self._answers: set[asyncio.Task[None]] = set()
        self._backoff = client.backoff()
        self._pause_s: float | None = None
        """The pause of all failed batches of one response, which count as one failure; None before it."""
        self._due = DueQueues(
            node, backlog, linger=settings.linger, max_in_flight=settings.max_in_flight_per_partition
        )
        backlog.watchers[node] = self

    def wake(self) -> None:
        """Check for due batches and for room for another request."""
        self._woken.set()

    def note(self, tp: TopicPartition) -> None:
        """Note a change of the partition's queue, which is or was sent to this broker."""
        self._due.changed[tp] = None
        self._woken.set()

    @property
    def in_flight(self) -> int:
        """Number of requests sent and not answered."""
        return len(self._answers)

    async def run(self) -> None:
        """Send batches until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            self._woken.clear()
            self._due.update(loop.time())
            if self._due.ready and len(self._answers) < self._settings.max_in_flight:
                await self._send()
                continue
            due_at = None if self._due.ready else self._due.due_at()
            timer = None if due_at is None else loop.call_at(due_at, self.wake)
            await self._woken.wait()
            if timer is not None:
                timer.cancel()

    async def close(self) -> None:
        """Stop sending and drop the requests in flight."""
        tasks = [*self._answers, *([self.task] if self.task else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _send(self) -> None:
        """Send one request of due batches; another task awaits its response."""
        acks = self._settings.acks
        gate = self._backlog.gate
        transactional_id = gate.transactional_id if gate else None
        versions = gate.produce_versions if gate else VERSIONS
        try:
            connection = await self._client.connection(self._node, lane=self._lane)
            version = highest_common(ApiKey.PRODUCE, versions, connection.versions, connection.name)
        except MillstreamError as error:
            self._unreachable(error)
            return
        sent = self._take()
        if not sent:
            return

        def frame(correlation_id: int) -> list[bytes | bytearray | memoryview]:
            topics: dict[Topic, list[tuple[int, Buffer]]] = defaultdict(list)
            for queue, batch in sent:
                topics[queue.tp.topic].append((queue.tp.partition, batch.data or b""))
            return encode_produce_request(
                list(topics.items()),
                version,
                correlation_id,
                self._client.client_id,
                transactional_id=transactional_id,
                acks=acks,
                timeout_ms=self._client.request_timeout_ms,
            )

        self._metrics.sent([len(batch.data or b"") for _, batch in sent])
        sent_at = asyncio.get_running_loop().time()
        try:
            if acks == 0:
                await connection.send_only(frame)
                self._act_on_answers(sent, {})
                return
            answer = await connection.send(frame, timeout=self._client.request_timeout_ms / 1000)
        except MillstreamError as error:
            self._lost(sent, error)
            return
        task = asyncio.create_task(self._receive(connection, answer, version, sent, sent_at))
        self._answers.add(task)
        task.add_done_callback(self._answered)

    def _take(self) -> Sent:
        """Take batches for one request, at most `max_request_size` bytes together but at least one.

        A queue whose batch does not fit is the first in the next request.
        """
        settings, due = self._settings, self._due
        batches: Sent = []
        size = 0
        due.update(asyncio.get_running_loop().time())  # Connecting may have taken long.
        while (queue := due.first()) is not None:
            if batches and size + queue.waiting[0].size > settings.max_request_size:
                break
            due.served(queue)
            batch = queue.take(settings.codec, settings.compression_level)
            batches.append((queue, batch))
            size += len(batch.data or b"")
        return batches

    async def _receive(
        self,
        connection: Connection,
        answer: asyncio.Future[memoryview],
        version: int,
        sent: Sent,
        sent_at: float,
    ) -> None:
        try:
            payload = await answer
            self._metrics.latency.record(asyncio.get_running_loop().time() - sent_at)
            _, pos = decode_response_header(ApiKey.PRODUCE, version, payload)
            response = decode(ProduceResponse, version, payload, pos)
        except MillstreamError as error:
            self._lost(sent, error)
            return
        if response.throttle_time_ms:
            connection.throttle(response.throttle_time_ms)
        self._act_on_answers(
            sent,
            {
                TopicPartition(topic.name, p.index): p
                for topic in response.responses
                for p in topic.partition_responses
            },
        )

    def _act_on_answers(self, sent: Sent, answers: dict[TopicPartition, PartitionProduceResponse]) -> None:
        """Act on the broker's answer for each batch; with acks=0 there is none, and every batch is acked."""
        failed = False
        self._pause_s = None
        for queue, batch in sent:
            answer = answers.get(queue.tp)
            if answer is None:
                if self._settings.acks == 0:
                    self._acked(queue, batch, None)
                else:
                    failed = True
                    self._retry(
                        queue, batch, error_for(ErrorCode.NETWORK_EXCEPTION, f"{queue.tp}: no answer")
                    )
            elif not answer.error_code:
                self._acked(queue, batch, answer.base_offset if answer.base_offset >= 0 else None)
            elif answer.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                # The batch is in the log already, but too old for the broker to remember its offset.
                self._acked(queue, batch, None)
            else:
                failed = True
                self._refused(queue, batch, answer)
            self._backlog.drop_halted(queue)
        self._director.answered()
        if not failed:
            self._backoff.reset()

    def _acked(self, queue: PartitionQueue, batch: PendingBatch, offset: int | None) -> None:
        queue.acked(batch, offset)
        self._backlog.free(batch)

    def _refused(self, queue: PartitionQueue, batch: PendingBatch, answer: PartitionProduceResponse) -> None:
        error = _error(queue.tp, answer)
        if error.code in SPLITTABLE and batch.raw is None and batch.count > 1 and not batch.done:
            queue.split(batch)
        elif is_retriable(error) or (batch.identity.idempotent and error.code in STATE_LOST):
            self._retry(queue, batch, error)
            if isinstance(error, StaleMetadata):
                self._director.look_up(queue)
        else:
            queue.give_up(batch, error)
            self._backlog.free(batch)

    def _retry(self, queue: PartitionQueue, batch: PendingBatch, error: MillstreamError) -> None:
        if isinstance(error, KafkaError) and error.code == ErrorCode.CONCURRENT_TRANSACTIONS:
            pause = COMPLETING_SECONDS
        else:
            pause = self._pause_s = self._backoff.next() if self._pause_s is None else self._pause_s
        queue.back_off(asyncio.get_running_loop().time() + pause)
        self._metrics.retried(batch.count)
        queue.retry(batch, error)

    def _lost(self, sent: Sent, error: MillstreamError) -> None:
        """Retry batches without an answer, which may be in the log; give them up with acks=0."""
        self._pause_s = None
        for queue, batch in sent:
            if self._settings.acks == 0 or not is_retriable(error):
                queue.give_up(batch, error)
                self._backlog.free(batch)
            else:
                self._retry(queue, batch, error)
                self._director.look_up(queue)
            self._backlog.drop_halted(queue)
        self._director.answered()

    def _unreachable(self, error: MillstreamError) -> None:
        """Leave the batches queued after a failed connection, and look up the partitions' leaders."""
        pause = self._backoff.next()
        for queue in list(self._due.ready.values()):
            queue.trouble = error
            if is_retriable(error):
                queue.back_off(asyncio.get_running_loop().time() + pause)
                self._director.look_up(queue)
            else:
                self._backlog.drop(queue, error)

    def _answered(self, task: asyncio.Task[None]) -> None:
        self._answers.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._director.crashed(error)
        self.wake()


def _error(tp: TopicPartition, answer: PartitionProduceResponse) -> KafkaError:
    message = about(str(tp), str(tp), answer.error_message)
    if answer.record_errors and answer.error_code in REFUSED_RECORDS:
        named = [(error.batch_index, error.batch_index_error_message) for error in answer.record_errors]
        return RecordsRefused(answer.error_code, message, named)
    return error_for(answer.error_code, message)
