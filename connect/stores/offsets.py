"""Source offsets: what a store is, and a connector's view of it.

A key is the JSON text `["connector",{"filename":"a"}]`, with the partition's keys sorted so that one
partition has one key; the value is the JSON of the offset, or None to forget it. Kafka's own form.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol


class OffsetStore(Protocol):
    """Keeps offsets by key. `get` answers from memory; `put` returns once they are durable."""

    def get(self, key: bytes) -> bytes | None:
        """The stored offset."""
        ...

    async def put(self, offsets: Mapping[bytes, bytes | None]) -> None:
        """Store these, all or none of them."""
        ...


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


class ConnectorOffsets:
    """The offsets of one connector; what a source task sees of the store."""

    def __init__(self, store: OffsetStore, connector: str) -> None:
        self._store = store
        self._connector = connector

    def key(self, partition: Mapping[str, Any]) -> bytes:
        """The store's key of a source partition."""
        return _json([self._connector, dict(partition)]).encode()

    def offset(self, partition: Mapping[str, Any]) -> dict[str, Any] | None:
        """The last committed source offset of a source partition, or None."""
        stored = self._store.get(self.key(partition))
        return None if stored is None else json.loads(stored)

    async def commit(self, offsets: Mapping[bytes, Mapping[str, Any]]) -> None:
        """Store offsets by `key`."""
        await self._store.put({key: _json(dict(offset)).encode() for key, offset in offsets.items()})
