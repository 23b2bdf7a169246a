"""Metrics of brokers of a cluster."""

from __future__ import annotations

from pathlib import Path

from kafka_client import Admin, BatchProducer, Client, NewTopic
from kafka_client.topic_partition import TopicPartition
from tests.logd.broker.cluster.brokers import Brokers
from tests.support.depth import deep
from tests.support.documented_metrics import check_documented

TPS = [TopicPartition("t", index) for index in range(4)]


@deep
async def test_brokers_tell_of_their_replicas_and_of_the_cluster(zookeeper: str, tmp_path: Path) -> None:
    async with Brokers(zookeeper, tmp_path, count=2, min_insync_replicas="2") as brokers:
        async with Client(brokers.bootstrap) as client, BatchProducer(client, acks=-1) as producer:
            await Admin(client).create_topics([NewTopic("t", len(TPS), 2)])
            for tp in TPS:
                await (await producer.send(tp.topic, tp.partition, [(1, None, b"1", ())]))
        first, second = (brokers.up[id_].broker.metrics for id_ in (1, 2))
        assert _sum(brokers, "ReplicaManager", "PartitionCount") == 2 * len(TPS)
        assert _sum(brokers, "ReplicaManager", "LeaderCount") == len(TPS)
        assert _sum(brokers, "ReplicaManager", "AtMinIsrPartitionCount") == len(TPS)
        assert _sum(brokers, "ReplicaManager", "UnderReplicatedPartitions") == 0
        assert _sum(brokers, "KafkaController", "ActiveControllerCount") == 1
        assert _sum(brokers, "KafkaController", "GlobalPartitionCount") == len(TPS)
        assert first.values("SessionExpireListener")["ZooKeeperExpires-total"] == 0
        assert second.values("replica-fetchers")["following"] == len(TPS) // 2
        await brokers.until(lambda: _sum(brokers, "ReplicaFetcherManager", "MaxLag") == 0)
        check_documented(
            brokers.controller.broker.metrics,
            "ReplicaManager",
            "KafkaController",
            "SessionExpireListener",
            "ReplicaFetcherManager",
            "LeaderReplication",
            "FollowerReplication",
            "cluster-updates",
            "isr-changes",
            "replica-fetchers",
            "broker-connections",
            "zookeeper",
        )
        await brokers.stop(1)
        await brokers.until(lambda: _sum(brokers, "ReplicaManager", "UnderMinIsrPartitionCount") == len(TPS))
        assert _sum(brokers, "ReplicaManager", "UnderReplicatedPartitions") == len(TPS)
        await brokers.start(1)
        await brokers.until(lambda: _sum(brokers, "ReplicaManager", "IsrExpands-total") == len(TPS))


def _sum(brokers: Brokers, type: str, name: str) -> float:
    return sum(each.broker.metrics.values(type)[name] for each in brokers.up.values())
