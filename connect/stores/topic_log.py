"""TopicLog: a compacted topic that a worker reads whole and follows; Kafka's KafkaBasedLog."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from kafka_client import Client, IsolationLevel

Pair: TypeAlias = tuple[bytes, bytes | None]
"""Key and value; None deletes the key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalTopic:
    """An internal topic of a group of workers, as the worker's settings describe it."""

    name: str
    setting: str
    """The setting that names the topic, as `config.storage.topic`."""
    partitions: int = 1
    """-1: the broker's default."""
    replication_factor: int = 3
    """-1: the broker's default."""
    configs: Mapping[str, str] = field(default_factory=dict)
    """More settings of a new topic; `cleanup.policy` is compact."""
    create: bool = True
    """False: a missing topic is an error (`internal.topics.automatic.creation.enable`)."""


@dataclass(frozen=True, slots=True)
class LogRecord:
    """A record as it was read; `offset` is its own, `timestamp` in ms since 1970."""

    partition: int
    offset: int
    key: bytes
    value: bytes | None
    timestamp: int


OnRecords: TypeAlias = Callable[[list[LogRecord]], None]


class TopicLog:
    """A topic that is read whole and followed. Open it with `await TopicLog.open(...)`, and `close` it."""

    @classmethod
    async def open(
        cls,
        client: Client,
        topic: InternalTopic,
        on_records: OnRecords,
        *,
        isolation_level: IsolationLevel = "read_uncommitted",
    ) -> TopicLog:
        """Create the topic if it is missing, and read it to its end."""
        raise NotImplementedError

    async def send(self, pairs: Sequence[Pair]) -> None:
        """Append records in order, and return once all in-sync replicas have them."""
        raise NotImplementedError

    async def read_to_end(self) -> None:
        """Return once everything that the topic held at the call has been given to `on_records`."""
        raise NotImplementedError

    async def close(self) -> None:
        """Stop following."""
        raise NotImplementedError
