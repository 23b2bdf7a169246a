"""ConfigTopic: the records of a group's config topic; Kafka's KafkaConfigBackingStore.

It carries records; what they add up to is `connect.herder.ConfigState`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from connect.errors import ConfigError
from connect.stores import json_documents
from connect.stores.config_records import LOGGER, RESTART, TARGET_STATE, ConfigRecord
from connect.stores.fenced_writer import FencedWriter
from connect.stores.internal_topic import InternalTopic
from connect.stores.topic_log import LogRecord, Pair, TopicLog
from kafka_client import Client, IsolationLevel

_log = logging.getLogger(__name__)

NO_OFFSET = -1
TIMEOUT_MS = 30_000
"""Kafka's READ_WRITE_TOTAL_TIMEOUT_MS, for a write with the reading that follows."""

_OF_ANY_WORKER = (TARGET_STATE, RESTART, LOGGER)
"""Records that every worker writes, not only the leader."""

OnConfigRecords = Callable[[list[ConfigRecord]], None]


class ConfigWriter(Protocol):
    """The way of records into the topic."""

    async def send(self, pairs: Sequence[Pair]) -> object:
        """Append records in order, and return once they are durable."""
        ...


class ConfigTopic:
    """A config topic. Open it with `await ConfigTopic.open(...)`, and `close` it."""

    def __init__(self, on_records: OnConfigRecords, name: str) -> None:
        self._on_records = on_records
        self._name = name  # records are read before there is a log
        self._log: TopicLog
        self._fenced: FencedWriter | None = None
        self.offset = NO_OFFSET
        """The offset after the last record that was read; -1 before the first (ClusterConfigState.offset)."""

    @classmethod
    async def open(
        cls,
        client: Client,
        topic: InternalTopic,
        on_records: OnConfigRecords,
        *,
        transactional_id: str | None = None,
        isolation_level: IsolationLevel = "read_uncommitted",
        on_lost: Callable[[], None] = lambda: None,
    ) -> ConfigTopic:
        """Read the topic whole. `on_records` gets all of its records, then those that follow.

        With `transactional_id` (`connect-cluster-<group>`, where `exactly.once.source.support` is preparing
        or enabled), `claim` comes before the first `write`. Where it is enabled, `isolation_level` is
        read_committed. `on_lost` is called if the topic has lost records: all that it still has are given to
        `on_records` again. Raises ConfigError if the topic has several partitions, and what
        `InternalTopic.ensure` raises.
        """
        store = cls(on_records, topic.name)
        single = replace(topic, partitions=1)

        def lost(partition: int) -> None:
            store.offset = NO_OFFSET
            on_lost()

        store._log = await TopicLog.open(
            client, single, store._read, isolation_level=isolation_level, on_lost=lost
        )
        if store._log.partition_count != 1:
            await store._log.close()
            raise ConfigError(
                topic.setting,
                topic.name,
                f"has {store._log.partition_count} partitions; the order of connector configs needs just one",
            )
        if transactional_id is not None:
            store._fenced = FencedWriter(client, topic.name, transactional_id)
        return store

    async def claim(self) -> None:
        """Fence the writers of earlier leaders; nothing to do without a transactional id (KIP-618).

        A worker calls this when it becomes the leader, and again after PrivilegedWriteError. Raises
        PrivilegedWriteError if the id cannot be taken over.
        """
        if self._fenced is not None:
            await self._fenced.claim()

    async def relinquish(self) -> None:
        """Give up the right to write, as another worker leads; `claim` takes it again."""
        if self._fenced is not None:
            await self._fenced.close()

    async def write(self, records: Sequence[ConfigRecord]) -> None:
        """Append records in order, and return once they are durable and have been read back.

        Raises TimeoutError after 30 s: the records may be written all the same. Raises KafkaError if one is
        refused. Raises PrivilegedWriteError if another worker is the leader: nothing was written then.
        """
        pairs = [
            (key.encode(), None if value is None else json_documents.encode(value)) for key, value in records
        ]
        is_anybodys = all(key.startswith(_OF_ANY_WORKER) for key, _ in records)
        writer: ConfigWriter = self._log if self._fenced is None or is_anybodys else self._fenced
        try:
            async with asyncio.timeout(TIMEOUT_MS / 1000):
                await writer.send(pairs)
                await self._log.read_to_end()
        except TimeoutError:
            raise TimeoutError(f"writing to the config topic {self._name} was not done in 30 s") from None

    async def read_to_end(self) -> int:
        """Read everything that the topic holds now, and return `offset`."""
        await self._log.read_to_end()
        return self.offset

    async def close(self) -> None:
        """Stop following."""
        if self._fenced is not None:
            await self._fenced.close()
        await self._log.close()

    def _read(self, records: list[LogRecord]) -> None:
        readable: list[ConfigRecord] = []
        for record in records:
            try:
                key, value = record.key.decode(), json_documents.decode(record.value)
            except ValueError as e:
                _log.error("%s: the record at %d is ignored: %s", self._name, record.offset, e)
                continue
            self.offset = record.offset + 1
            readable.append((key, value))
        if readable:
            self._on_records(readable)
