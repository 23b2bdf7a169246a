"""Source offsets: the interface of a store, and a connector's view of it.

A key is the JSON text `["connector",{"filename":"a"}]`; the value is the JSON of the offset, or None to
forget it: Kafka's own form. Here the partition's fields are sorted, so that one partition has one key. A Java
worker writes them in another order; stores know all spellings of a key (`offset_keys`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from connect.errors import DataError
from connect.stores import json_documents


class OffsetStore(Protocol):
    """A store of offsets by key. `get` reads from memory; `put` returns once the offsets are durable."""

    def get(self, key: bytes) -> bytes | None:
        """Return the offset stored under `key`, or None."""
        ...

    def keys(self) -> Iterable[bytes]:
        """Return the keys of all stored offsets, in their normal form."""
        ...

    async def refresh(self) -> None:
        """Read what other workers have stored until now."""
        ...

    async def put(self, offsets: Mapping[bytes, bytes | None]) -> None:
        """Store these offsets; after an error none or, in a topic, some are stored. None deletes its key."""
        ...


def _document(what: str, value: Mapping[str, Any], *before: str) -> bytes:
    try:
        document = dict(value)
        return json_documents.encode([*before, document] if before else document, sort_keys=True)
    except (TypeError, ValueError) as e:
        raise DataError(f"a {what} must be a dict of JSON values, not {value!r}: {e}") from e


class ConnectorOffsets:
    """The offsets of one connector, as its source tasks read them from the store."""

    def __init__(self, store: OffsetStore, connector: str) -> None:
        self._store = store
        self._connector = connector

    def key(self, partition: Mapping[str, Any]) -> bytes:
        """Return the store's key of a source partition. Raises DataError if it is no dict of JSON values."""
        return _document("source partition", partition, self._connector)

    def encode(self, offset: Mapping[str, Any]) -> bytes:
        """Return the offset's stored form; later changes to the dict have no effect on it."""
        return _document("source offset", offset)

    def offset(self, partition: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the last committed source offset of a source partition, or None."""
        stored = self._store.get(self.key(partition))
        return None if stored is None else json_documents.decode(stored)

    async def commit(self, offsets: Mapping[bytes, bytes]) -> None:
        """Store offsets in the form `encode` returns, by the keys `key` returns."""
        await self._store.put(offsets)
