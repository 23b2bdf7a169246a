"""Two brokers of Apache Kafka in one cluster, whose partitions change leaders: by election, and by a kill."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from kafka_client import Client
from kafka_client.errors import ErrorCode
from kafka_client.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kafka_client.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from tests.kafka_client.running import QUICK
from tests.support.apache_kafka import ApacheKafka

PREFERRED = 0
RETRY_SECONDS = 0.1
SETTINGS = {
    "broker.session.timeout.ms": 3_000,
    "broker.heartbeat.interval.ms": 500,
    "replica.lag.time.max.ms": 3_000,
    # Leaders change when the test says so.
    "auto.leader.rebalance.enable": "false",
}


class TwoBrokers:
    """Broker 1 is the controller as well, and stays; 2 may be killed. `elected` and `killed` count."""

    def __init__(self, folder: Path) -> None:
        self.elected = self.killed = 0
        self._first = ApacheKafka(folder / "one", SETTINGS)
        voters = self._first.settings["controller.quorum.voters"]
        self._second = ApacheKafka(
            folder / "two",
            {
                **SETTINGS,
                "process.roles": "broker",
                "node.id": 2,
                "controller.quorum.voters": voters,
            },
        )
        self._second.settings["listeners"] = f"PLAINTEXT://{self._second.bootstrap}"

    @property
    def bootstrap(self) -> str:
        """Both."""
        return f"{self._first.bootstrap},{self._second.bootstrap}"

    def __enter__(self) -> Self:
        self._first.start()
        try:
            self._second.start()
        except BaseException:
            self._first.kill()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._second.kill()
        self._first.kill()

    async def kill_and_start(self, topics: Sequence[str]) -> None:
        """SIGKILL of a broker: the other one leads what it led, and it follows when it is back."""
        self.killed += 1
        await asyncio.to_thread(self._second.kill)
        await asyncio.to_thread(self._second.start)

    async def elect_others(self, topics: Sequence[str]) -> None:
        """Elect the other replica as the leader of every partition of the topics."""
        async with Client(self._first.bootstrap, **QUICK) as client:
            pending = await self._prefer_others(client, topics)
            while pending:
                pending = await self._elect(client, pending)
                await asyncio.sleep(RETRY_SECONDS)

    async def _prefer_others(self, client: Client, topics: Sequence[str]) -> dict[str, list[int]]:
        """Reassign so that the replica that does not lead is the preferred one, which elections choose."""
        described = (await client.metadata(refresh=True)).topics
        reassigned = []
        for topic in topics:
            partitions = described[topic].partitions.values()
            orders = {
                p.partition: sorted((1, 2), key=lambda node, at=p.leader: node == at) for p in partitions
            }  # type: ignore[misc]
            parts = [ReassignablePartition(partition_index=p, replicas=order) for p, order in orders.items()]
            reassigned.append(ReassignableTopic(name=topic, partitions=parts))
        response = await client.request(AlterPartitionReassignmentsRequest(topics=reassigned))
        refused = [p for topic in response.responses for p in topic.partitions if p.error_code]
        assert not response.error_code and not refused, response
        return {each.name: [p.partition_index for p in each.partitions] for each in reassigned}

    async def _elect(self, client: Client, pending: dict[str, list[int]]) -> dict[str, list[int]]:
        """Request the elections; return the partitions whose preferred replica is not in sync yet."""
        named = [TopicPartitions(topic=topic, partitions=parts) for topic, parts in pending.items()]
        request = ElectLeadersRequest(election_type=PREFERRED, topic_partitions=named, timeout_ms=10_000)
        response = await client.request(request)
        assert not response.error_code, response
        left: dict[str, list[int]] = defaultdict(list)
        for topic in response.replica_election_results:
            for p in topic.partition_result:
                self.elected += p.error_code == ErrorCode.NONE
                if p.error_code == ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE:
                    left[topic.topic].append(p.partition_id)
                else:
                    assert p.error_code in (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED), p
        return left
