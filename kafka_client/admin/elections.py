"""Admin calls about elections of leaders (KIP-183, KIP-460)."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from kafka_client.admin.base import AdminBase
from kafka_client.cluster.answers import refusal
from kafka_client.errors import ErrorCode, KafkaError, error_for
from kafka_client.fetcher.offsets import by_topic
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)


class ElectionType(IntEnum):
    """The replicas that an election may choose."""

    PREFERRED = 0
    """The first of the replicas, if it is in sync."""
    UNCLEAN = 1
    """Any replica, if none is in sync: records that it lacks are lost."""


class ElectionAdmin(AdminBase):
    """Elections; see `admin.Admin`."""

    async def elect_leaders(
        self, type: ElectionType, tps: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, KafkaError | None]:
        """Elect leaders (None: of all partitions that need it); return each partition's error or None.

        ELECTION_NOT_NEEDED says that the election would choose the present leader.
        """
        topics = None
        if tps is not None:
            topics = [
                TopicPartitions(topic=name, partitions=partitions)
                for name, partitions in by_topic(tps).items()
            ]
        request = ElectLeadersRequest(
            election_type=type, topic_partitions=topics, timeout_ms=self._timeout_ms
        )
        response: ElectLeadersResponse = await self._ask_controller(request)
        if response.error_code:
            raise error_for(response.error_code, "electing leaders")
        return {
            TopicPartition(topic.topic, p.partition_id): _error(
                TopicPartition(topic.topic, p.partition_id), p.error_code, p.error_message
            )
            for topic in response.replica_election_results
            for p in topic.partition_result
        }


def _error(tp: TopicPartition, code: int, message: str | None) -> KafkaError | None:
    return refusal(code, f"partition {tp}", str(tp), message) if code != ErrorCode.NONE else None
