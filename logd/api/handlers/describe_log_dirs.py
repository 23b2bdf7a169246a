"""DescribeLogDirs, 1 to 5: the contents of each log directory, and its volume's room (from version 4 on).

A null list asks for all partitions. A partition on its way to another directory is listed in both, in the new
one as a future replica. A directory that is offline is answered with KAFKA_STORAGE_ERROR and nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Container, Iterator
from pathlib import Path

from kafka_client.errors import ErrorCode
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from logd.api.request.context import RequestContext
from logd.broker.broker import Broker
from logd.broker.log_dirs.log_dirs import absolute, space_of

REQUEST = DescribeLogDirsRequest


class Everything:
    """All partitions."""

    def __contains__(self, key: object) -> bool:
        return True


async def handle(request: DescribeLogDirsRequest, context: RequestContext) -> DescribeLogDirsResponse:
    """Answer directory by directory."""
    broker = context.broker
    requested: Container[TopicPartition] = Everything()
    if request.topics is not None:
        requested = {
            TopicPartition(topic.topic, index) for topic in request.topics for index in topic.partitions
        }
    topics = {
        absolute(directory.path): _topics(broker, directory.path, requested)
        for directory in broker.log_dirs.online
    }
    results = []
    for path in broker.log_dirs.paths:
        result = DescribeLogDirsResult(log_dir=str(path))
        if path in topics:
            space = await asyncio.to_thread(space_of, path)
            result.topics, result.total_bytes, result.usable_bytes = topics[path], *space
        else:
            result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
        results.append(result)
    return DescribeLogDirsResponse(results=results)


def _topics(broker: Broker, path: Path, requested: Container[TopicPartition]) -> list[DescribeLogDirsTopic]:
    topics: dict[str, DescribeLogDirsTopic] = {}
    for (name, index), size, lag, is_future in _logs(broker, path):
        if (name, index) in requested:
            topic = topics.setdefault(name, DescribeLogDirsTopic(name=name))
            topic.partitions.append(
                DescribeLogDirsPartition(
                    partition_index=index, partition_size=size, offset_lag=lag, is_future_key=is_future
                )
            )
    return list(topics.values())


def _logs(broker: Broker, path: Path) -> Iterator[tuple[TopicPartition, int, int, bool]]:
    """Yield partition, size in bytes, offset lag and whether it is a future log, per log of a directory."""
    for key, partition in broker.catalog.partitions.items():
        if partition.directory.path == path:
            lag = max(partition.high_watermark - partition.log.log_end_offset, 0)
            yield key, partition.log.size, lag, False
    for key, future in broker.moves.futures.items():
        if future.target.path == path and key in broker.catalog.partitions:
            yield key, future.size, max(future.log.log_end_offset - future.end_offset, 0), True
