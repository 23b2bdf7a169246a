"""The offsets of a connector, as a user reads, changes and resets them (KIP-875).

    source    partition and offset are the plugin's own documents
    sink      {kafka_topic, kafka_partition} and {kafka_offset}: the next record of a consumer group

A connector is STOPPED while its offsets change. The worker asks its plugin first, by `alter_offsets`: the
plugin may refuse, and may change offsets that it keeps elsewhere. Messages are Kafka's.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias

from connect.errors import BadRequest, ConnectError, NotFound
from connect.herder import ConfigState, TargetState
from connect.stores import ConnectorOffsets, OffsetStore
from connect.stores.offset_keys import read_key
from kafka_client import Admin, TopicPartition
from kafka_client.errors import ErrorCode, KafkaError

Document: TypeAlias = dict[str, Any]
SourceOffsets: TypeAlias = Sequence[tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]]
"""Source partitions with their new offsets; None deletes one."""
SinkOffsets: TypeAlias = Mapping[TopicPartition, int | None]
"""The next record's offset per partition; None deletes one."""

TOPIC, PARTITION, OFFSET = "kafka_topic", "kafka_partition", "kafka_offset"
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_BUSY = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NON_EMPTY_GROUP,
        ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.ILLEGAL_GENERATION,
    }
)
"""A group with members answers a change with one of these."""


def check_stopped(config: ConfigState, name: str) -> None:
    """Raise NotFound if there is no such connector, BadRequest if its offsets may not be changed now."""
    if name not in config.connectors:
        raise NotFound(f"Connector {name} not found")
    if config.target(name) is not TargetState.STOPPED or config.task_count(name):
        raise not_stopped(name)


def not_stopped(name: str) -> BadRequest:
    """Return the error for a change of offsets while the connector, or one of its tasks, may run."""
    return BadRequest(
        "Connectors must be in the STOPPED state before their offsets can be modified. This can be done "
        f"for the specified connector by issuing a 'PUT' request to the '/connectors/{name}/stop' endpoint"
    )


# --- sources ---


async def source_offsets(store: OffsetStore, connector: str) -> Document:
    """Return `{offsets: [{partition, offset}]}` of a source, as they are stored now."""
    await store.refresh()
    view = ConnectorOffsets(store, connector)
    pairs = [(partition, view.offset(partition)) for partition in _partitions(store, connector)]
    return {"offsets": [{"partition": partition, "offset": offset} for partition, offset in pairs]}


async def alter_source_offsets(
    store: OffsetStore,
    connector: str,
    offsets: SourceOffsets,
    alter: Callable[[SourceOffsets], Awaitable[bool | None]],
) -> str:
    """Store other offsets of a source, and return the message for the user.

    `alter` calls the plugin's `alter_offsets`. Raises BadRequest for what is no partition or offset,
    ConnectError if the plugin refuses; nothing is changed then.
    """
    view = ConnectorOffsets(store, connector)
    changes: dict[bytes, bytes | None] = {}
    for partition, offset in offsets:
        if not isinstance(partition, Mapping) or not (offset is None or isinstance(offset, Mapping)):
            raise BadRequest(f"a source partition and its offset must be objects: {partition!r}, {offset!r}")
        changes[view.key(partition)] = None if offset is None else view.encode(offset)
    has_altered = await _ask_plugin(connector, alter(offsets))
    await store.put(changes)
    return _message("altered", is_whole=has_altered)


async def reset_source_offsets(
    store: OffsetStore, connector: str, alter: Callable[[SourceOffsets], Awaitable[bool | None]]
) -> str:
    """Delete all offsets of a source, and return the message for the user; see `alter_source_offsets`."""
    await store.refresh()
    view = ConnectorOffsets(store, connector)
    partitions = _partitions(store, connector)
    has_altered = await _ask_plugin(connector, alter([(partition, None) for partition in partitions]))
    await store.put({view.key(partition): None for partition in partitions})
    return _message("reset", is_whole=has_altered)


def _partitions(store: OffsetStore, connector: str) -> list[dict[str, Any]]:
    keys = (read_key(key) for key in sorted(store.keys()))
    return [partition for name, partition in filter(None, keys) if name == connector]


# --- sinks ---


async def sink_offsets(admin: Admin, group: str) -> Document:
    """Return `{offsets: [{partition, offset}]}` of a sink, which reads as this consumer group."""
    committed = await admin.list_group_offsets(group)
    return {
        "offsets": [
            {"partition": {TOPIC: tp.topic, PARTITION: tp.partition}, "offset": {OFFSET: at.offset}}
            for tp, at in sorted(committed.items())
        ]
    }


def parse_sink_offsets(offsets: SourceOffsets) -> dict[TopicPartition, int | None]:
    """Return a request's offsets by partition. Raises BadRequest, which says what is wrong with them."""
    parsed: dict[TopicPartition, int | None] = {}
    for partition, offset in offsets:
        if partition is None:
            raise BadRequest("The partition for a sink connector offset cannot be null or missing")
        if not isinstance(partition, Mapping) or TOPIC not in partition or PARTITION not in partition:
            raise BadRequest(
                f"The partition for a sink connector offset must contain the keys '{TOPIC}' and '{PARTITION}'"
            )
        if partition[TOPIC] is None:
            raise BadRequest("Kafka topic names must be valid strings and may not be null")
        if partition[PARTITION] is None:
            raise BadRequest("Kafka partitions must be valid numbers and may not be null")
        number = _integer(partition[PARTITION], 31, "partition", "Partition")
        tp = TopicPartition(str(partition[TOPIC]), number)
        if offset is None:
            parsed[tp] = None
        elif not isinstance(offset, Mapping) or OFFSET not in offset:
            raise BadRequest(
                f"The offset for a sink connector should either be null or contain the key '{OFFSET}'"
            )
        else:
            parsed[tp] = _integer(offset[OFFSET], 63, "offset", "Offset")
    return parsed


async def alter_sink_offsets(
    admin: Admin,
    connector: str,
    group: str,
    offsets: SinkOffsets,
    alter: Callable[[SinkOffsets], Awaitable[bool | None]],
) -> str:
    """Commit other offsets of a sink's group, and return the message for the user.

    `alter` calls the plugin's `alter_offsets`. Raises BadRequest for a topic or partition that does not
    exist, ConnectError if the plugin refuses or the group has members; nothing is changed then.
    """
    await _check_partitions(admin, [tp for tp, offset in offsets.items() if offset is not None])
    has_altered = await _ask_plugin(connector, alter(offsets))
    try:
        if committed := {tp: offset for tp, offset in offsets.items() if offset is not None}:
            await admin.alter_group_offsets(group, committed)
        if deleted := [tp for tp, offset in offsets.items() if offset is None]:
            await admin.delete_offsets(group, deleted)
    except KafkaError as e:
        raise _failure(connector, "alter", e) from e
    return _message("altered", is_whole=has_altered)


async def reset_sink_offsets(
    admin: Admin, connector: str, group: str, alter: Callable[[SinkOffsets], Awaitable[bool | None]]
) -> str:
    """Delete a sink's group with its offsets, and return the message; see `alter_sink_offsets`."""
    committed = await admin.list_group_offsets(group)
    has_altered = await _ask_plugin(connector, alter(dict.fromkeys(committed)))
    try:
        await admin.delete_groups([group], missing_ok=True)
    except KafkaError as e:
        raise _failure(connector, "reset", e) from e
    return _message("reset", is_whole=has_altered)


async def _check_partitions(admin: Admin, tps: Sequence[TopicPartition]) -> None:
    topics = await admin.list_topics() if tps else {}
    for tp in tps:
        if tp.topic not in topics or tp.partition not in topics[tp.topic].partitions:
            raise BadRequest(f"there is no partition {tp.partition} of a topic {tp.topic}")


def _integer(value: Any, bits: int, name: str, title: str) -> int:
    text = str(value)
    number = int(text) if _INTEGER.fullmatch(text) and len(text) < 25 else -1
    if not 0 <= number < 1 << bits:
        raise BadRequest(
            f"Failed to parse the following Kafka {name} value in the provided offsets: '{text}'. "
            f"{title} values for sink connectors need to be integers."
        )
    return number


# --- both ---


async def _ask_plugin(connector: str, answer: Awaitable[bool | None]) -> bool:
    try:
        return bool(await answer)
    except NotImplementedError as e:
        raise ConnectError(
            f"Failed to modify offsets for connector {connector} because it doesn't support external "
            "modification of offsets"
        ) from e


def _message(done: str, *, is_whole: bool) -> str:
    """Return the message for the user; `is_whole` if the plugin said that nothing is left to do."""
    if is_whole:
        return f"The offsets for this connector have been {done} successfully"
    return (
        f"The Connect framework-managed offsets for this connector have been {done} successfully. However, "
        f"if this connector manages offsets externally, they will need to be manually {done} in the system "
        "that the connector uses."
    )


def _failure(connector: str, verb: str, error: KafkaError) -> ConnectError:
    start = f"Failed to {verb} consumer group offsets for connector {connector}"
    if error.code not in _BUSY:
        return ConnectError(f"{start}: {error}")
    return ConnectError(
        f"{start} either because its tasks haven't stopped completely yet or the connector was resumed "
        f"before the request to {verb} its offsets could be successfully completed. If the connector is in a "
        "stopped state, this operation can be safely retried. If it doesn't eventually succeed, the Connect "
        "cluster may need to be restarted to get rid of the zombie sink tasks."
    )
