"""Admin calls about brokers' log folders: what is in them, and how much room they have (KIP-113, KIP-827)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from logd.client.admin.base import AdminBase
from logd.client.fetcher.offsets import by_topic
from logd.errors import KafkaError, error_for
from logd.topic_partition import TopicPartition
from logd.wire.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)


@dataclass(frozen=True, slots=True)
class ReplicaInfo:
    """A partition's log in a folder. `size` in bytes; `is_future`: it is on its way into this folder.

    `offset_lag`: records behind the high watermark, or behind the log it is copied from.
    """

    size: int
    offset_lag: int
    is_future: bool


@dataclass(frozen=True, slots=True)
class LogDir:
    """A broker's log folder. `error`: why nothing is known of it, None if it is well.

    `total_bytes` and `usable_bytes` are its volume's, -1 where the broker does not say (before Kafka 3.3).
    """

    path: str
    error: KafkaError | None
    replicas: Mapping[TopicPartition, ReplicaInfo]
    total_bytes: int = -1
    usable_bytes: int = -1


class LogDirAdmin(AdminBase):
    """Log folders; see `admin.Admin`."""

    async def describe_log_dirs(
        self, brokers: Iterable[int] | None = None, tps: Iterable[TopicPartition] | None = None
    ) -> dict[int, list[LogDir]]:
        """The log folders of each broker (None: of all), with these partitions (None: with all)."""
        topics = None
        if tps is not None:
            topics = [
                DescribableLogDirTopic(topic=name, partitions=partitions)
                for name, partitions in by_topic(tps).items()
            ]
        asked = list((await self._client.metadata((), refresh=True)).brokers) if brokers is None else brokers

        async def ask(node: int) -> tuple[int, list[LogDir]]:
            request = DescribeLogDirsRequest(topics=topics)
            response: DescribeLogDirsResponse = await self._client.request(request, node=node)
            if response.error_code:
                raise error_for(response.error_code, f"log folders of broker {node}")
            return node, [_folder(node, result) for result in response.results]

        calls = (self._client.retrying(partial(ask, node), timeout_ms=self._timeout_ms) for node in asked)
        found: Sequence[tuple[int, list[LogDir]]] = await asyncio.gather(*calls)
        return dict(found)


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
