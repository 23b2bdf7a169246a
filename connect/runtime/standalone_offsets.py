"""Offsets of a standalone worker: of sources in its file, of sinks in their groups (KIP-875)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from connect.errors import BadRequest
from connect.runtime.client_settings import group_id
from connect.stores import FileOffsetStore
from connect.stores.offsets import ConnectorOffsets
from kafka_client import Admin, TopicPartition

Pair = tuple[Mapping[str, Any], Mapping[str, Any] | None]
"""A partition and its offset, None to delete the offset."""
_DONE = (
    "The Connect framework-managed offsets for this connector have been {verb} successfully. However, if "
    "this connector manages offsets externally, they will need to be manually {verb} in the system that the "
    "connector uses."
)
ALTERED, RESET = _DONE.format(verb="altered"), _DONE.format(verb="reset")
_SINK_PARTITION = "the partition of a sink is {kafka_topic, kafka_partition}"
_SINK_OFFSET = "the offset of a sink is {kafka_offset}, a whole number"


class SourceOffsets:
    """The offsets of a source connector in the worker's store."""

    def __init__(self, store: FileOffsetStore, connector: str) -> None:
        self._store = store
        self._offsets = ConnectorOffsets(store, connector)
        self._connector = connector

    async def read(self) -> list[dict[str, Any]]:
        """Return `[{partition, offset}]`."""
        stored = self._store.of_connector(self._connector)
        return [
            {"partition": json.loads(key)[1], "offset": json.loads(value)} for key, value in stored.items()
        ]

    async def alter(self, pairs: Sequence[Pair]) -> None:
        """Change offsets; None deletes one. Raises DataError for what is not JSON."""
        await self._store.put(
            {
                self._offsets.key(partition): None if offset is None else self._offsets.encode(offset)
                for partition, offset in pairs
            }
        )

    async def reset(self) -> None:
        """Delete all offsets of the connector."""
        await self._store.put(dict.fromkeys(self._store.of_connector(self._connector)))


class SinkOffsets:
    """The offsets of a sink connector in its group."""

    def __init__(
        self, admin: Admin, worker: Mapping[str, Any], connector: str, config: Mapping[str, Any]
    ) -> None:
        self._admin = admin
        self._group = group_id(connector, worker, config)

    async def read(self) -> list[dict[str, Any]]:
        """Return `[{partition, offset}]`."""
        committed = await self._admin.list_group_offsets(self._group)
        return [
            {
                "partition": {"kafka_topic": tp.topic, "kafka_partition": tp.partition},
                "offset": {"kafka_offset": committed[tp].offset},
            }
            for tp in sorted(committed)
        ]

    async def alter(self, pairs: Sequence[Pair]) -> None:
        """Change offsets; None deletes one. Raises BadRequest for what is no offset of a sink."""
        changes = {_partition(partition): _offset(offset) for partition, offset in pairs}
        new = {tp: offset for tp, offset in changes.items() if offset is not None}
        deleted = [tp for tp, offset in changes.items() if offset is None]
        if new:
            await self._admin.alter_group_offsets(self._group, new)
        if deleted:
            await self._admin.delete_offsets(self._group, deleted)

    async def reset(self) -> None:
        """Delete the group with all its offsets."""
        await self._admin.delete_groups([self._group], missing_ok=True)


def _partition(partition: Mapping[str, Any]) -> TopicPartition:
    topic, number = partition.get("kafka_topic"), partition.get("kafka_partition")
    number = _whole(number)
    if not isinstance(topic, str) or not topic or number is None or len(partition) != 2:
        raise BadRequest(f"{json.dumps(dict(partition))}: {_SINK_PARTITION}")
    return TopicPartition(topic, number)


def _offset(offset: Mapping[str, Any] | None) -> int | None:
    if offset is None:
        return None
    number = _whole(offset.get("kafka_offset"))
    if number is None or len(offset) != 1:
        raise BadRequest(f"{json.dumps(dict(offset))}: {_SINK_OFFSET}")
    return number


def _whole(value: object) -> int | None:
    """Return a whole number, which may be a text as in Kafka, or None for another value."""
    if isinstance(value, str) and value.isascii() and value.isdecimal():
        value = int(value)
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 0 <= value < 1 << 63 else None  # type: ignore[return-value, operator]
