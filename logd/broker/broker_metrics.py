"""A broker's metrics, by the names of Kafka's JMX beans: read from its parts on request.

Kafka's `kafka.server:type=ReplicaManager,name=PartitionCount` is `PartitionCount` of that domain and type; a
meter such as `RequestsPerSec` is its count, `Requests-total`. Queues that Kafka does not have stand under
`millstream`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from logd.storage.open_files import OPEN_FILES

if TYPE_CHECKING:
    from kafka_client.metrics.metrics import Metrics, Values
    from logd.broker.broker import Broker


_IN_SYNC = (
    "UnderReplicatedPartitions",
    "UnderMinIsrPartitionCount",
    "AtMinIsrPartitionCount",
    "IsrShrinks-total",
    "IsrExpands-total",
    "FailedIsrUpdates-total",
)
_CLUSTER = ("ActiveControllerCount", "GlobalTopicCount", "GlobalPartitionCount", "OfflinePartitionsCount")

QUOTA_TYPES = ("Produce", "Fetch", "Request", "ControllerMutation")
"""Kafka's types of the metrics of client quotas, which exist for clients that have one."""


class BrokerMetrics:
    """Reads one broker that has started."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def add_to(self, metrics: Metrics) -> None:
        """Register everything; the queues of the network are the server's to add."""
        metrics.add("kafka.server", "ReplicaManager", self._replicas)
        metrics.add("kafka.server", "BrokerTopicMetrics", self._bytes)
        metrics.add("kafka.controller", "KafkaController", self._cluster)
        metrics.add("kafka.log", "LogManager", self._directories)
        metrics.add_each("kafka.log", "Log", self._logs)
        metrics.add("kafka.server", "FetchSessionCache", self._fetch_sessions)
        metrics.add_each("kafka.network", "RequestMetrics", self._requests)
        metrics.add_each("kafka.server", "DelayedOperationPurgatory", self._waiting)
        for type in QUOTA_TYPES:
            metrics.add_each("kafka.server", type, partial(self._quotas, type))
        for type, read in self._queues().items():
            metrics.add("millstream", type, read)
        if (membership := self._broker.membership) is not None:
            from logd.broker.cluster.cluster_metrics import ClusterMetrics

            ClusterMetrics(self._broker, membership).add_to(metrics)

    def _queues(self) -> Mapping[str, Callable[[], Values]]:
        broker = self._broker
        return {
            "metadata-answers": broker.metadata_responses.statistics,
            "cold-reads": broker.cold_reads.statistics,
            "batch-validation": broker.validator.statistics,
            "fetch-sessions": broker.fetch_sessions.statistics,
            "flusher": broker.housekeeping.flusher.statistics,
            "compaction": broker.compaction.statistics,
            "moves": broker.moves.statistics,
            "open-files": OPEN_FILES.statistics,
            "disk-work": broker.catalog.disk_work,
            "deletions": broker.housekeeping.deletions,
            "transactions": broker.transactions.statistics,
            "truncations": broker.truncations.statistics,
        }

    def _quotas(self, type: str) -> Iterable[tuple[Mapping[str, str], Values]]:
        quotas = self._broker.client_quotas
        return () if quotas is None else quotas.metrics(type)

    def _waiting(self) -> Iterable[tuple[Mapping[str, str], Values]]:
        yield {"delayedOperation": "Fetch"}, {"PurgatorySize": self._broker.wakeups.waiting}

    def _replicas(self) -> Values:
        partitions = self._broker.catalog.partitions.values()
        return {
            "PartitionCount": len(partitions),
            "LeaderCount": sum(partition.is_leader for partition in partitions),
            "OfflineReplicaCount": self._offline(),
            "ProducerIdCount": self._producers(),
            **self._in_sync(),
        }

    def _bytes(self) -> Values:
        broker = self._broker
        return {
            "BytesOutPerSec-total": broker.bytes_out,
            "ReplicationBytesOutPerSec-total": broker.replication_bytes_out,
        }

    def _in_sync(self) -> Values:
        leading = self._broker.leading
        if (
            leading is None
        ):  # one broker holds one replica, which is in sync with itself, and as many as can be
            count = len(self._broker.catalog.partitions)
            return dict.fromkeys(_IN_SYNC, 0) | {"AtMinIsrPartitionCount": count}
        led, changes = leading.led.values(), leading.isr_changes
        counts = (
            sum(each.is_under_replicated for each in led),
            sum(each.spare < 0 for each in led),
            sum(each.spare == 0 for each in led),
            changes.shrinks,
            changes.expansions,
            changes.refusals,
        )
        return dict(zip(_IN_SYNC, counts, strict=True))

    def _cluster(self) -> Values:
        membership, image = self._broker.membership, self._broker.image
        if membership is not None and not membership.member.is_active:
            return dict.fromkeys(_CLUSTER, 0)  # the controller tells
        offline = self._offline() if membership is None else len(image.broker_index.leaderless)
        partitions = sum(topic.partitions for topic in image.topics.values())
        return dict(zip(_CLUSTER, (1, len(image.topics), partitions, offline), strict=True))

    def _producers(self) -> int:
        partitions = list(self._broker.catalog.partitions.values())
        return sum(len(partition.log.producers.producers) for partition in partitions)

    def _offline(self) -> int:
        catalog = self._broker.catalog
        if self._broker.membership is not None:
            return len(catalog.lost)
        return sum(topic.partitions.count(None) for topic in catalog.topics.values())

    def _directories(self) -> Values:
        dirs = self._broker.log_dirs
        failed = sum(directory.failure is not None for directory in dirs)
        return {"OfflineLogDirectoryCount": failed + len(dirs.unusable)}

    def _logs(self) -> Iterator[tuple[Mapping[str, str], Values]]:
        for tp, partition in list(self._broker.catalog.partitions.items()):
            log = partition.log
            yield (
                {"topic": tp.topic, "partition": str(tp.partition)},
                {
                    "Size": log.size,
                    "NumLogSegments": len(log.segments.row),
                    "LogStartOffset": log.log_start_offset,
                    "LogEndOffset": log.log_end_offset,
                },
            )

    def _fetch_sessions(self) -> Values:
        statistics = self._broker.fetch_sessions.statistics()
        return {
            "NumIncrementalFetchSessions": statistics["sessions"],
            "NumIncrementalFetchPartitionsCached": statistics["partitions"],
            "IncrementalFetchSessionEvictions-total": statistics["evictions"],
        }

    def _requests(self) -> Iterable[tuple[Mapping[str, str], Values]]:
        for key, count in sorted(self._broker.requests_served.items()):
            yield {"request": _api_name(key)}, {"Requests-total": count}


def _api_name(key: int) -> str:
    """Return Kafka's name of an API: `ListOffsets` of LIST_OFFSETS."""
    from kafka_client.wire import ApiKey  # asked for after the start

    return ApiKey(key).name.title().replace("_", "")
