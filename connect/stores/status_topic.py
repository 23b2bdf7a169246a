"""StatusTopic: statuses in a group's status topic; Kafka's KafkaStatusBackingStore.

Of each key the last value that was put waits until it is sent. So the queue is bounded by the number of
connectors, tasks and topics. What is returned is what the topic holds, as far as it was read.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from connect.stores import json_documents
from connect.stores.internal_topic import InternalTopic
from connect.stores.status import StoredStatus, TopicUse
from connect.stores.status_table import StatusTable, status_key, topic_key
from connect.stores.topic_log import LogRecord, OnLost, TopicLog
from kafka_client import Client
from kafka_client.cluster.cluster import is_retriable
from kafka_client.errors import MillstreamError

_log = logging.getLogger(__name__)

ATTEMPT_MS = 10_000
"""How long brokers may be away before a status is looked at again: a newer one may have replaced it."""
CLOSE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class _Waiting:
    value: bytes | None
    generation: int | None
    """The group's generation of a status; None for a topic's use."""
    may_be_sent: Callable[[], bool]


class StatusTopic:
    """A StatusStore in a topic. Open it with `await StatusTopic.open(...)`, and `close` it."""

    def __init__(self, on_topic_deleted: Callable[[str], None] = lambda connector: None) -> None:
        self._table = StatusTable(on_topic_deleted)
        self._log: TopicLog
        self._waiting: dict[str, _Waiting] = {}
        self._generation = -1
        """The group's generation of the last status that was put."""
        self._woken = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._sender: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls,
        client: Client,
        topic: InternalTopic,
        on_lost: OnLost = lambda partition: None,
        on_topic_deleted: Callable[[str], None] = lambda connector: None,
    ) -> StatusTopic:
        """Read the topic whole. Raises what `InternalTopic.ensure` raises.

        `on_lost` is called with the number of a partition that has lost records. What this store has read
        stays, until it reads something newer. `on_topic_deleted` is called with a connector's name when this
        store has read that the use of one of its topics is deleted.
        """
        store = cls(on_topic_deleted)
        store._log = await TopicLog.open(
            client, topic, store._read, delivery_timeout_ms=ATTEMPT_MS, on_lost=on_lost
        )
        store._sender = asyncio.create_task(store._send_waiting(), name=f"send {topic.name}")
        return store

    def put(self, connector: str, status: StoredStatus, task: int | None = None) -> None:
        """Store a status, whatever is stored."""
        self._put_status(connector, task, status, lambda: True)

    def put_safe(self, connector: str, status: StoredStatus, task: int | None = None) -> None:
        """Store a status, unless another worker has stored one of a newer generation.

        What is stored is looked at here, and before each attempt to send.
        """

        def may_replace() -> bool:
            return status.may_replace(self.get(connector, task))

        if may_replace():
            self._put_status(connector, task, status, may_replace)

    def delete(self, connector: str, task: int | None = None) -> None:
        """Forget a task's status, or a connector's with its tasks', but not the topics that it has used."""
        self._put(status_key(connector, task), _Waiting(None, None, lambda: True))

    def get(self, connector: str, task: int | None = None) -> StoredStatus | None:
        """Return a status, or None."""
        return self._table.get(connector, task)

    def tasks(self, connector: str) -> dict[int, StoredStatus]:
        """Return the statuses of a connector's tasks by number."""
        return dict(self._table.tasks.get(connector, {}))

    def connectors(self) -> set[str]:
        """Return the names of all connectors with a status."""
        return set(self._table.connectors)

    def put_topic(self, use: TopicUse) -> None:
        """Store that a connector uses a topic."""
        value = json_documents.encode(use.value())
        self._put(topic_key(use.connector, use.topic), _Waiting(value, None, lambda: True))

    def topics(self, connector: str) -> list[TopicUse]:
        """Return the topics that a connector has used, by name."""
        return self._table.uses(connector)

    def delete_topic(self, connector: str, topic: str) -> None:
        """Forget that a connector used a topic."""
        self._put(topic_key(connector, topic), _Waiting(None, None, lambda: True))

    async def flush(self) -> None:
        """Return once everything that was put is stored and read back."""
        await self._idle.wait()
        await self._log.read_to_end()

    async def close(self) -> None:
        """Store what was put, for at most 5 s, and stop following."""
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._idle.wait()
        except TimeoutError:
            _log.warning("%d statuses are not stored: the brokers do not take them", len(self._waiting))
        if self._sender is not None:
            self._sender.cancel()
            await asyncio.wait([self._sender])
        await self._log.close()

    def _put_status(
        self, connector: str, task: int | None, status: StoredStatus, may_be_sent: Callable[[], bool]
    ) -> None:
        self._generation = status.generation
        value = json_documents.encode(status.value())
        self._put(status_key(connector, task), _Waiting(value, status.generation, may_be_sent))

    def _put(self, key: str, waiting: _Waiting) -> None:
        self._waiting.pop(key, None)  # the last one put is the last one sent
        self._waiting[key] = waiting
        self._idle.clear()
        self._woken.set()

    async def _send_waiting(self) -> None:
        """Send what waits, until cancelled."""
        backoff = self._log.backoff()
        while True:
            await self._woken.wait()
            self._woken.clear()
            batch = {key: each for key, each in self._waiting.items() if each.may_be_sent()}
            self._waiting.clear()
            try:
                if batch:
                    await self._log.send([(key.encode(), each.value) for key, each in batch.items()])
                backoff.reset()
            except MillstreamError as e:
                if is_retriable(e):
                    self._put_back(batch)
                    _log.warning("%d statuses could not be sent, trying again: %s", len(batch), e)
                    await asyncio.sleep(backoff.next())
                else:
                    _log.error("statuses could not be sent: %s: %s", ", ".join(batch), e)
            if not self._waiting:
                self._idle.set()

    def _put_back(self, batch: dict[str, _Waiting]) -> None:
        """Have statuses sent again, but those that this worker has replaced, or of a former generation."""
        current = {key: each for key, each in batch.items() if each.generation in (None, self._generation)}
        self._waiting = {**current, **self._waiting}
        if self._waiting:
            self._woken.set()

    def _read(self, records: list[LogRecord]) -> None:
        for record in records:
            self._table.apply(record.key.decode(errors="replace"), record.value)
