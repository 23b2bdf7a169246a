"""Admin calls about brokers' log directories: contents, free space, moves (KIP-113, KIP-827)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from kafka_client.admin.base import AdminBase
from kafka_client.cluster.answers import refusal
from kafka_client.errors import KafkaError, error_for
from kafka_client.fetcher.offsets import by_topic
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from kafka_client.wire.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)


@dataclass(frozen=True, slots=True)
class ReplicaInfo:
    """A partition's log in a log directory. `size` in bytes; `is_future`: it is being moved into it.

    `offset_lag`: records behind the high watermark, or behind the log that it is copied from.
    """

    size: int
    offset_lag: int
    is_future: bool


@dataclass(frozen=True, slots=True)
class LogDir:
    """A broker's log directory. `error`: why the broker cannot describe it, None if there is no error.

    `total_bytes` and `usable_bytes` are its volume's, -1 if the broker does not say (before Kafka 3.3).
    """

    path: str
    error: KafkaError | None
    replicas: Mapping[TopicPartition, ReplicaInfo]
    total_bytes: int = -1
    usable_bytes: int = -1


class LogDirAdmin(AdminBase):
    """Log directories; see `admin.Admin`."""

    async def describe_log_dirs(
        self, brokers: Iterable[int] | None = None, tps: Iterable[TopicPartition] | None = None
    ) -> dict[int, list[LogDir]]:
        """Return the log directories of each broker (None: of all), with these partitions (None: all)."""
        topics = None
        if tps is not None:
            topics = [
                DescribableLogDirTopic(topic=name, partitions=partitions)
                for name, partitions in by_topic(tps).items()
            ]
        nodes = list((await self._client.metadata((), refresh=True)).brokers) if brokers is None else brokers

        async def ask(node: int) -> tuple[int, list[LogDir]]:
            request = DescribeLogDirsRequest(topics=topics)
            response: DescribeLogDirsResponse = await self._client.request(request, node=node)
            if response.error_code:
                raise error_for(response.error_code, f"log folders of broker {node}")
            return node, [_folder(node, result) for result in response.results]

        calls = (self._client.retrying(partial(ask, node), timeout_ms=self._timeout_ms) for node in nodes)
        log_dirs: Sequence[tuple[int, list[LogDir]]] = await asyncio.gather(*calls)
        return dict(log_dirs)

    async def alter_replica_log_dirs(
        self, moves: Mapping[int, Mapping[TopicPartition, str]]
    ) -> dict[int, dict[TopicPartition, KafkaError | None]]:
        """Begin to move brokers' partitions into the log directories with these paths.

        Return the error by broker and partition, None if the move has begun; the copying goes on after the
        call. A partition that the broker does not have yet (REPLICA_NOT_AVAILABLE,
        UNKNOWN_TOPIC_OR_PARTITION) will be created in that directory.
        """

        async def ask(node: int) -> tuple[int, dict[TopicPartition, KafkaError | None]]:
            response: AlterReplicaLogDirsResponse = await self._client.request(
                _moves_request(moves[node]), node=node
            )
            answered = {
                TopicPartition(topic.topic_name, p.partition_index): p.error_code
                for topic in response.results
                for p in topic.partitions
            }
            return node, {
                tp: refusal(code, f"partition {tp} on broker {node}", str(tp), None) if code else None
                for tp, code in answered.items()
            }

        calls = (self._client.retrying(partial(ask, node), timeout_ms=self._timeout_ms) for node in moves)
        return dict(await asyncio.gather(*calls))


def _moves_request(folders: Mapping[TopicPartition, str]) -> AlterReplicaLogDirsRequest:
    by_folder: dict[str, list[TopicPartition]] = {}
    for tp, path in folders.items():
        by_folder.setdefault(path, []).append(tp)
    return AlterReplicaLogDirsRequest(
        dirs=[
            AlterReplicaLogDir(
                path=path,
                topics=[
                    AlterReplicaLogDirTopic(name=name, partitions=partitions)
                    for name, partitions in by_topic(tps).items()
                ],
            )
            for path, tps in by_folder.items()
        ]
    )


def _folder(node: int, result: DescribeLogDirsResult) -> LogDir:
    replicas = {
        TopicPartition(topic.name, p.partition_index): ReplicaInfo(
            p.partition_size, p.offset_lag, p.is_future_key
        )
        for topic in result.topics
        for p in topic.partitions
    }
    error = error_for(result.error_code, f"{result.log_dir} of broker {node}") if result.error_code else None
    return LogDir(result.log_dir, error, replicas, result.total_bytes, result.usable_bytes)
