"""OffsetTopic: source offsets in a group's offset topic; Kafka's KafkaOffsetBackingStore."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from connect.stores.internal_topic import InternalTopic
from kafka_client import Client


class OffsetTopic:
    """An OffsetStore in a topic. Open it with `await OffsetTopic.open(...)`, and `close` it."""

    @classmethod
    async def open(cls, client: Client, topic: InternalTopic, *, exactly_once: bool = False) -> OffsetTopic:
        """Read the topic whole; with `exactly_once` no offset of an aborted or open transaction counts."""
        raise NotImplementedError

    def get(self, key: bytes) -> bytes | None:
        """Return the offset stored under `key`, or None."""
        raise NotImplementedError

    def keys(self) -> Iterable[bytes]:
        """Return the keys of all stored offsets, in their normal form."""
        raise NotImplementedError

    async def put(self, offsets: Mapping[bytes, bytes | None]) -> None:
        """Store these offsets, and return once all in-sync replicas have them. None deletes its key."""
        raise NotImplementedError

    async def refresh(self) -> None:
        """Read what others have stored until now."""
        raise NotImplementedError

    async def close(self) -> None:
        """Stop following."""
        raise NotImplementedError
