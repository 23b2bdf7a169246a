"""Requests to a group's coordinator, and the group's committed offsets (KIP-496, KIP-709)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kafka_client.cluster.cluster import Client
from kafka_client.cluster.metadata import OffsetAndMetadata
from kafka_client.errors import (
    ConnectionClosed,
    ErrorCode,
    KafkaError,
    RequestTimedOut,
    error_for,
)
from kafka_client.fetcher.offsets import by_topic
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire import Message
from kafka_client.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kafka_client.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)

_MOVED = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)


async def ask_coordinator(
    client: Client, group_id: str, message: Message, *, lane: str = "", timeout_ms: int | None = None
) -> Any:
    """Send a request to the group's coordinator, and return the response.

    After a lost connection or a timeout the next call looks up the coordinator again.
    """
    node = await client.coordinator(group_id)
    try:
        return await client.request(message, node=node, lane=lane, timeout_ms=timeout_ms)
    except (ConnectionClosed, RequestTimedOut):
        client.forget_coordinator(group_id)
        raise


def coordinator_error(client: Client, group_id: str, code: int, what: str = "") -> KafkaError:
    """Return the exception for a coordinator's error code.

    If the code says that the coordinator moved, the next request looks it up again.
    """
    if code in _MOVED:
        client.forget_coordinator(group_id)
    return error_for(code, f"group {group_id!r}{': ' if what else ''}{what}")


async def commit_offsets(
    client: Client,
    group_id: str,
    offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
    *,
    generation: int = -1,
    member_id: str = "",
    group_instance_id: str | None = None,
    lane: str = "",
) -> None:
    """Commit offsets as a member, or without a generation (-1) for a group that has no members.

    Retriable errors are retried. Raises RebalanceNeeded, Fenced, or KafkaError naming the partition.
    """
    if not offsets:
        return
    request = OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=group_instance_id,
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                partitions=[_committed(p, offsets[TopicPartition(topic, p)]) for p in partitions],
            )
            for topic, partitions in by_topic(offsets).items()
        ],
    )

    async def attempt() -> KafkaError | None:
        response: OffsetCommitResponse = await ask_coordinator(client, group_id, request, lane=lane)
        for topic in response.topics:
            for p in topic.partitions:
                if p.error_code:
                    tp = TopicPartition(topic.name, p.partition_index)
                    error = coordinator_error(client, group_id, p.error_code, f"committing {tp}")
                    if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                        return error  # The topic was deleted: a retry would not help.
                    raise error
        return None

    error = await client.retrying(attempt)
    if error is not None:
        raise error


def _committed(partition: int, offset: int | OffsetAndMetadata) -> OffsetCommitRequestPartition:
    whole = OffsetAndMetadata.of(offset)
    return OffsetCommitRequestPartition(
        partition_index=partition,
        committed_offset=whole.offset,
        committed_leader_epoch=whole.leader_epoch,
        committed_metadata=whole.metadata,
    )


async def fetch_offsets(
    client: Client,
    group_id: str,
    tps: Iterable[TopicPartition] | None,
    *,
    require_stable: bool = True,
    lane: str = "",
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return the committed offsets of these partitions; None means all partitions of the group.

    Partitions without a committed offset are left out. `require_stable`: wait for transactions that are about
    to commit offsets (KIP-447).
    """
    partitions = None if tps is None else by_topic(tps)
    if partitions is not None and not partitions:
        return {}
    old, new = None, None
    if partitions is not None:
        old = [OffsetFetchRequestTopic(name=name, partition_indexes=ps) for name, ps in partitions.items()]
        new = [OffsetFetchRequestTopics(name=name, partition_indexes=ps) for name, ps in partitions.items()]
    request = OffsetFetchRequest(
        group_id=group_id,
        require_stable=require_stable,
        topics=old,
        groups=[OffsetFetchRequestGroup(group_id=group_id, topics=new)],
    )

    async def attempt() -> dict[TopicPartition, OffsetAndMetadata]:
        response: OffsetFetchResponse = await ask_coordinator(client, group_id, request, lane=lane)
        answer = response.groups[0] if response.groups else response
        if answer.error_code:
            raise coordinator_error(client, group_id, answer.error_code, "fetching offsets")
        offsets = {}
        for topic in answer.topics:
            for p in topic.partitions:
                tp = TopicPartition(topic.name, p.partition_index)
                if p.error_code:
                    raise coordinator_error(client, group_id, p.error_code, f"committed offset of {tp}")
                if p.committed_offset >= 0:
                    offsets[tp] = OffsetAndMetadata(
                        p.committed_offset, p.metadata or "", p.committed_leader_epoch
                    )
        return offsets

    return await client.retrying(attempt)
