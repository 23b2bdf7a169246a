"""DeleteRecords on partitions with other replicas: it is done when they have deleted as well."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from kafka_client import Client
from kafka_client.errors import ErrorCode
from kafka_client.records import build_batch
from kafka_client.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tests.logd.broker.cluster.nodes import TOPIC, TP, Node, Nodes

LONG_MS = 60_000


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(test())  # type: ignore[arg-type]


async def filled(nodes: Nodes) -> None:
    await nodes.create_topic()
    for value in (b"a", b"b", b"c"):
        nodes.leader.partition.produce(memoryview(build_batch([(1000, None, value, ())])), 1000, -1)
    await nodes.until(lambda: nodes.leader.partition.high_watermark == 3)


async def delete(node: Node, offset: int, timeout_ms: int = LONG_MS) -> DeleteRecordsPartitionResult:
    partition = DeleteRecordsPartition(partition_index=0, offset=offset)
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=TOPIC, partitions=[partition])], timeout_ms=timeout_ms
    )
    async with Client(f"127.0.0.1:{node.server.broker.endpoint.port}") as client:
        response = await client.request(request)
    ((result,),) = (topic.partitions for topic in response.topics)
    row: DeleteRecordsPartitionResult = result
    return row


def code_and_offset(result: DeleteRecordsPartitionResult) -> tuple[int, int]:
    return result.error_code, result.low_watermark


def starts(nodes: Nodes) -> list[int]:
    return [node.partition.log_start_offset for node in nodes.nodes.values() if node.is_up]


async def test_all_replicas_have_deleted_when_it_is_answered(tmp_path: Path) -> None:
    async with Nodes(tmp_path, fetch_wait_ms=LONG_MS) as nodes:
        await filled(nodes)
        assert code_and_offset(await delete(nodes.leader, 2, timeout_ms=LONG_MS // 2)) == (0, 2)
        assert starts(nodes) == [2, 2, 2]
        assert code_and_offset(await delete(nodes.leader, -1)) == (0, 3)
        assert code_and_offset(await delete(nodes.leader, 1)) == (0, 3), "it has gone already"
        assert not nodes.leader.leading.low_watermarks


async def test_one_that_does_not_fetch_is_waited_for_until_the_time_is_up_or_it_is_gone(
    tmp_path: Path,
) -> None:
    async with Nodes(tmp_path) as nodes:
        await filled(nodes)
        await delete(nodes.leader, 1)
        silent = nodes.nodes[3]
        silent.assignment.fetchers.unfollow(TP)
        assert code_and_offset(await delete(nodes.leader, 3, timeout_ms=100)) == (
            ErrorCode.REQUEST_TIMED_OUT,
            1,
        )
        assert starts(nodes)[:2] == [3, 3]
        waiting = asyncio.ensure_future(delete(nodes.leader, 3))
        await nodes.until(lambda: bool(nodes.leader.leading.low_watermarks))
        await silent.stop()
        assert code_and_offset(await waiting) == (0, 3)


async def test_another_leader_is_told(tmp_path: Path) -> None:
    async with Nodes(tmp_path) as nodes:
        await filled(nodes)
        for other in (2, 3):
            nodes.nodes[other].assignment.fetchers.unfollow(TP)
        before = nodes.leader
        await delete(before, 1, timeout_ms=100)  # what was asked already is answered
        waiting = asyncio.ensure_future(delete(before, 2))
        await nodes.until(lambda: bool(before.leading.low_watermarks))
        before.leading.unlead(TP)
        assert code_and_offset(await waiting) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
