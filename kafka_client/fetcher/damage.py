"""The search for the next readable offset of a log, after a broker's CORRUPT_MESSAGE.

A damaged length keeps a broker from finding the next batch. It can read again from the next offset in its
index, or from the next segment; no request returns that offset.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from kafka_client.cluster.cluster import Client
from kafka_client.errors import ErrorCode, error_for
from kafka_client.fetcher.offsets import LATEST, list_offsets
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic


async def next_readable(client: Client, tp: TopicPartition, topic_id: bytes, offset: int) -> int:
    """Return an offset after `offset` from which the partition's leader can read, found by trying; at most
    the log's end.

    The offset before it cannot be read. Raises MillstreamError.
    """

    async def attempt() -> int:
        end = (await list_offsets(client, {tp: LATEST}))[tp].offset

        async def can_read(at: int) -> bool:
            return at >= end or await _can_read(client, tp, topic_id, at)

        return await first_true_after(offset, can_read)

    return await client.retrying(attempt)


async def first_true_after(low: int, test: Callable[[int], Awaitable[bool]]) -> int:
    """Return a number above `low` for which `test` is true, but not for the number before, unless that is
    `low`.

    `test` must be true from some number on. It is called about twice the binary logarithm of times.
    """
    step = 1
    while not await test(low + step):
        low, step = low + step, 2 * step
    high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        if await test(middle):
            high = middle
        else:
            low = middle
    return high


async def _can_read(client: Client, tp: TopicPartition, topic_id: bytes, offset: int) -> bool:
    """Return True if the leader can read the batch at `offset`. Raises MillstreamError, but not for
    CORRUPT_MESSAGE.
    """
    partition = FetchPartition(partition=tp.partition, fetch_offset=offset, partition_max_bytes=1)
    request = FetchRequest(
        max_wait_ms=0,
        max_bytes=1,
        topics=[FetchTopic(topic=tp.topic, topic_id=topic_id, partitions=[partition])],
    )
    response: FetchResponse = await client.request(request, node=await client.leader(tp))
    codes = [each.error_code for topic in response.responses for each in topic.partitions]
    for code in (response.error_code, *codes):
        if code == ErrorCode.CORRUPT_MESSAGE:
            return False
        if code:
            raise error_for(code, f"fetching {tp} at {offset}")
    return True
