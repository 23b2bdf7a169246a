"""Routing of a producer's batches: leaders, producer ids, a sender for each broker, and timeouts.

`backlog` keeps the batches, and `node` chooses the queue that is sent next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from kafka_client.cluster.cluster import Client
from kafka_client.cluster.lookup import look_up_forever
from kafka_client.cluster.metadata import NO_NODE
from kafka_client.errors import (
    ConnectionClosed,
    ErrorCode,
    KafkaError,
    MillstreamError,
    RequestTimedOut,
    error_for,
)
from kafka_client.producer.accumulator import PartitionQueue
from kafka_client.producer.backlog import Backlog
from kafka_client.producer.identity import Identity
from kafka_client.producer.node import ProduceNode, ProduceSettings
from kafka_client.producer.producer_metrics import ProducerMetrics
from kafka_client.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

_EXPIRY_CHECK_SECONDS = 1.0


class Director:
    """A sender of all queues of a `Backlog`, from `start` to `close`. `delivery_timeout` is in seconds.

    `failure`: the exception of a bug that ended one of its tasks, after which nothing is sent.
    """

    def __init__(
        self,
        client: Client,
        *,
        lane: str,
        settings: ProduceSettings,
        backlog: Backlog,
        metrics: ProducerMetrics,
        delivery_timeout: float,
    ) -> None:
        self.failure: BaseException | None = None
        self._client = client
        self._lane = lane
        self._settings = settings
        self._backlog = backlog
        self._metrics = metrics
        self._delivery_timeout = delivery_timeout
        self._nodes: dict[int, ProduceNode] = {}
        self._settled = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to send."""
        self._spawn(self._direct(), "produce-director")
        self._spawn(self._expire(), "produce-expiry")

    async def close(self) -> None:
        """Stop sending, and drop the requests in flight."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(
            *self._tasks, *(node.close() for node in self._nodes.values()), return_exceptions=True
        )

    @property
    def in_flight(self) -> int:
        """Number of requests sent and not answered."""
        return sum(node.in_flight for node in self._nodes.values())

    def wake(self) -> None:
        """Send what an opened gate admits."""
        for node in self._nodes.values():
            node.wake()

    async def settle(self) -> None:
        """Wait until every batch that was sent is answered or its connection is lost."""
        while self.failure is None and any(queue.in_flight for queue in self._backlog.busy.values()):
            self._settled.clear()
            await self._settled.wait()

    async def new_identity(self) -> Identity:
        """Return a new producer id. Raises KafkaError if the broker's error is final."""

        async def ask() -> Identity:
            request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
            response: InitProducerIdResponse = await self._client.request(request)
            if response.error_code:
                raise error_for(response.error_code, "InitProducerId")
            return Identity(response.producer_id, response.producer_epoch)

        return await self._client.retrying(ask)

    # --- what `ProduceNode` reports ---

    def look_up(self, queue: PartitionQueue) -> None:
        """Look up the leader of a partition that has moved."""
        queue.lose_leader()
        self._client.invalidate_metadata()

    def answered(self) -> None:
        """Wake `settle`, since batches are no longer in flight."""
        self._settled.set()

    def crashed(self, error: BaseException) -> None:
        """Fail all batches, and every later call, after a bug ended a task."""
        self.failure = error
        self._settled.set()
        self._backlog.abandon(ConnectionClosed(f"the producer failed: {error!r}"))

    # --- tasks ---

    async def _direct(self) -> None:
        await look_up_forever(
            self._client,
            self._backlog.lookup_wanted,
            self._look_all_up,
            remains=lambda: bool(self._backlog.lookups),
            give_up=self._backlog.abandon,
        )

    async def _look_all_up(self) -> None:
        await self._find_leaders()
        await self._renew_identities()

    async def _find_leaders(self) -> None:
        homeless = [queue for queue in self._backlog.lookups.values() if queue.node == NO_NODE]
        if not homeless:
            return
        try:
            metadata = await self._client.metadata({queue.tp.topic for queue in homeless}, allow_missing=True)
        except MillstreamError as error:
            for queue in homeless:
                queue.trouble = error
            raise
        for queue in homeless:
            topic = metadata.topics.get(queue.tp.topic)
            partition = topic.partitions.get(queue.tp.partition) if topic else None
            if partition is None:
                self._note_missing(queue)
            elif partition.leader not in metadata.brokers:
                queue.trouble = KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{queue.tp} has no leader")
                self._client.invalidate_metadata()
            else:
                self._send_to(partition.leader)
                queue.found_leader(partition.leader)

    def _send_to(self, number: int) -> None:
        """Start a sender for this broker if there is none."""
        if number not in self._nodes:
            node = self._nodes[number] = ProduceNode(
                self._client,
                number,
                lane=self._lane,
                settings=self._settings,
                backlog=self._backlog,
                director=self,
                metrics=self._metrics,
            )
            node.task = self._spawn(node.run(), f"produce-node-{number}")

    def _note_missing(self, queue: PartitionQueue) -> None:
        """Wait for a topic that may just have been created; fail its batches if it stays away."""
        self._client.invalidate_metadata()
        now = _now()
        if queue.missing_since is None:
            queue.missing_since = now
        elif now - queue.missing_since > self._client.missing_topic_wait_ms / 1000:
            queue.missing_since = None
            error = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{queue.tp} does not exist")
            self._backlog.drop(queue, error)

    async def _renew_identities(self) -> None:
        for queue in list(self._backlog.lookups.values()):
            if queue.identity is None:
                queue.renew(await self.new_identity())

    async def _expire(self) -> None:
        """Fail batches that wait longer than the delivery timeout."""
        pause = min(_EXPIRY_CHECK_SECONDS, self._delivery_timeout / 4)
        while True:
            await asyncio.sleep(pause)
            oldest = _now() - self._delivery_timeout
            for queue in list(self._backlog.busy.values()):
                error = RequestTimedOut(f"{queue.tp}: not acknowledged within {self._delivery_timeout:g} s")
                self._backlog.drop(queue, error, lambda batch: batch.created_at <= oldest)  # noqa: B023

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=name)
        task.add_done_callback(self._note_end)
        self._tasks.append(task)
        return task

    def _note_end(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.crashed(error)


def _now() -> float:
    return asyncio.get_running_loop().time()
