"""AlterReplicaLogDirs, 1 to 2: partitions move to other log directories while they serve (KIP-113).

The response says that a move has begun; DescribeLogDirs shows its progress. A request for the directory that
a partition is in cancels a move, and another move replaces the one before. For a partition that does not
exist yet the directory is remembered, and the response is UNKNOWN_TOPIC_OR_PARTITION all the same.
"""

from __future__ import annotations

import asyncio

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from logd.api.request.context import RequestContext
from logd.broker.broker import Broker
from logd.metadata.topic_names import check_name

REQUEST = AlterReplicaLogDirsRequest


async def handle(request: AlterReplicaLogDirsRequest, context: RequestContext) -> AlterReplicaLogDirsResponse:
    """Answer partition by partition."""
    paths = {
        (topic.name, index): target.path
        for target in request.dirs
        for topic in target.topics
        for index in topic.partitions
    }
    codes = await asyncio.gather(*(_alter(context.broker, *key, path) for key, path in paths.items()))
    topics: dict[str, AlterReplicaLogDirTopicResult] = {}
    for (name, index), code in zip(paths, codes, strict=True):
        topic = topics.setdefault(name, AlterReplicaLogDirTopicResult(topic_name=name))
        topic.partitions.append(AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code))
    return AlterReplicaLogDirsResponse(results=list(topics.values()))


async def _alter(broker: Broker, name: str, index: int, path: str) -> int:
    try:
        check_name(name)
        directory = broker.log_dirs.directory(path)
        try:
            partition = broker.catalog.find(name).hosted(index)
        except KafkaError as error:
            if error.code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER):
                broker.log_dirs.prefer(name, index, path)
            if error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER:  # a replica that may come: Kafka's code for it
                raise KafkaError(ErrorCode.REPLICA_NOT_AVAILABLE, error.message) from None
            raise
        await broker.moves.alter(partition, directory)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE
