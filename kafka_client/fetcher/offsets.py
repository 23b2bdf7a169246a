"""Lookups of offsets: a partition's start, its end, or the first record of a time (ListOffsets)."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from kafka_client.cluster.cluster import Client
from kafka_client.errors import ConnectionClosed, ErrorCode, MillstreamError, RequestTimedOut, error_for
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

IsolationLevel = Literal["read_uncommitted", "read_committed"]

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3

ISOLATION: Mapping[str, int] = {"read_uncommitted": 0, "read_committed": 1}


@dataclass(frozen=True, slots=True)
class ListedOffset:
    """An offset from `list_offsets`; -1 if no record is that late."""

    offset: int
    timestamp: int = -1
    leader_epoch: int = -1


async def list_offsets(
    client: Client,
    timestamps: Mapping[TopicPartition, int],
    *,
    isolation_level: IsolationLevel = "read_uncommitted",
    timeout_ms: int | None = None,
) -> dict[TopicPartition, ListedOffset]:
    """Return for each partition the offset of a timestamp in ms, or of LATEST, EARLIEST, MAX_TIMESTAMP.

    With read_committed LATEST is the last stable offset. Retriable errors are retried; errors name the
    partition.
    """
    offsets: dict[TopicPartition, ListedOffset] = {}

    async def attempt() -> None:
        missing = [tp for tp in timestamps if tp not in offsets]
        nodes = await by_leader(client, missing)
        await all_or_first_error(
            _ask(client, node, {tp: timestamps[tp] for tp in tps}, ISOLATION[isolation_level], offsets)
            for node, tps in nodes.items()
        )

    await client.retrying(attempt, timeout_ms=timeout_ms)
    return offsets


async def list_each_offset(
    client: Client,
    timestamps: Mapping[TopicPartition, int],
    *,
    isolation_level: IsolationLevel = "read_uncommitted",
    timeout_ms: int,
) -> dict[TopicPartition, ListedOffset | MillstreamError]:
    """Return each partition's offset, or its error; see `list_offsets`. Each leader is asked once."""
    results: dict[TopicPartition, ListedOffset | MillstreamError] = {}

    async def ask(node: int, tps: list[TopicPartition]) -> None:
        offsets: dict[TopicPartition, ListedOffset] = {}
        errors: dict[TopicPartition, MillstreamError] = {}
        rest: MillstreamError = ConnectionClosed(f"broker {node} left the partition out of its answer")
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                specs = {tp: timestamps[tp] for tp in tps}
                errors = await _ask_each(client, node, specs, ISOLATION[isolation_level], offsets)
        except TimeoutError:
            rest = RequestTimedOut(f"broker {node} did not answer within {timeout_ms} ms")
        except MillstreamError as error:
            rest = error
        results.update({tp: offsets.get(tp) or errors.get(tp) or rest for tp in tps})

    try:
        async with asyncio.timeout(timeout_ms / 1000):
            metadata = await client.metadata({tp.topic for tp in timestamps}, allow_missing=True)
    except TimeoutError:
        away: MillstreamError = RequestTimedOut(f"no broker answered within {timeout_ms} ms")
        return dict.fromkeys(timestamps, away)
    except MillstreamError as error:
        return dict.fromkeys(timestamps, error)
    nodes: dict[int, list[TopicPartition]] = defaultdict(list)
    for tp in timestamps:
        topic = metadata.topics.get(tp.topic)
        partition = None if topic is None else topic.partitions.get(tp.partition)
        if partition is None:
            results[tp] = error_for(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{tp} does not exist")
        elif partition.leader not in metadata.brokers:
            results[tp] = error_for(ErrorCode.LEADER_NOT_AVAILABLE, f"{tp} has no leader")
        else:
            nodes[partition.leader].append(tp)
    await all_or_first_error(ask(node, tps) for node, tps in nodes.items())
    if any(isinstance(result, MillstreamError) for result in results.values()):
        client.invalidate_metadata()
    return results


async def by_leader(client: Client, tps: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]]:
    """Group the partitions by their leader's node id."""
    partitions = list(tps)
    await client.metadata({tp.topic for tp in partitions})
    nodes: dict[int, list[TopicPartition]] = defaultdict(list)
    for tp in partitions:
        nodes[await client.leader(tp)].append(tp)
    return nodes


async def all_or_first_error(calls: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run the calls concurrently to their ends, then raise the first one's error, if there is any."""
    for outcome in await asyncio.gather(*calls, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome


def by_topic(tps: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Group partition numbers by topic."""
    topics: dict[str, list[int]] = defaultdict(list)
    for tp in tps:
        topics[tp.topic].append(tp.partition)
    return topics


async def _ask(
    client: Client,
    node: int,
    timestamps: Mapping[TopicPartition, int],
    isolation: int,
    offsets: dict[TopicPartition, ListedOffset],
) -> None:
    """Ask one leader; add its answers to `offsets`, then raise the first of its errors."""
    for error in (await _ask_each(client, node, timestamps, isolation, offsets)).values():
        raise error


async def _ask_each(
    client: Client,
    node: int,
    timestamps: Mapping[TopicPartition, int],
    isolation: int,
    offsets: dict[TopicPartition, ListedOffset],
) -> dict[TopicPartition, MillstreamError]:
    """Ask one leader; add its answers to `offsets`, and return its errors."""
    topics = [
        ListOffsetsTopic(
            name=topic,
            partitions=[
                ListOffsetsPartition(partition_index=p, timestamp=timestamps[TopicPartition(topic, p)])
                for p in partitions
            ],
        )
        for topic, partitions in by_topic(timestamps).items()
    ]
    request = ListOffsetsRequest(
        replica_id=-1, isolation_level=isolation, topics=topics, timeout_ms=client.request_timeout_ms
    )
    response: ListOffsetsResponse = await client.request(request, node=node)
    errors: dict[TopicPartition, MillstreamError] = {}
    for topic in response.topics:
        for p in topic.partitions:
            tp = TopicPartition(topic.name, p.partition_index)
            if not p.error_code:
                offsets[tp] = ListedOffset(p.offset, p.timestamp, p.leader_epoch)
            else:
                errors[tp] = error_for(p.error_code, f"offset of {tp}")
    return errors
