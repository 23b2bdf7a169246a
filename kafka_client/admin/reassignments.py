"""Admin calls that move partitions to other brokers (KIP-455)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kafka_client.admin.base import AdminBase
from kafka_client.cluster.answers import refusal
from kafka_client.errors import KafkaError, error_for
from kafka_client.fetcher.offsets import by_topic
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from kafka_client.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)


@dataclass(frozen=True, slots=True)
class OngoingReassignment:
    """A partition on its way: all its replicas, those that come, and those that go in the end."""

    replicas: Sequence[int]
    adding: Sequence[int]
    removing: Sequence[int]


class ReassignmentAdmin(AdminBase):
    """Reassignments; see `admin.Admin`."""

    async def alter_partition_reassignments(
        self, replicas: Mapping[TopicPartition, Sequence[int] | None]
    ) -> dict[TopicPartition, KafkaError | None]:
        """Begin to move partitions to these brokers, the preferred leader first; None cancels a move.

        Return each partition's error, None if the move has begun. `list_partition_reassignments` shows
        running moves.
        """
        topics = [
            ReassignableTopic(
                name=name,
                partitions=[_reassignable(p, replicas[TopicPartition(name, p)]) for p in partitions],
            )
            for name, partitions in by_topic(replicas).items()
        ]
        request = AlterPartitionReassignmentsRequest(topics=topics, timeout_ms=self._timeout_ms)
        response: AlterPartitionReassignmentsResponse = await self._ask_controller(request)
        if response.error_code:
            raise error_for(response.error_code, response.error_message or "reassigning partitions")
        errors: dict[TopicPartition, KafkaError | None] = {}
        for topic in response.responses:
            for p in topic.partitions:
                tp = TopicPartition(topic.name, p.partition_index)
                error = refusal(p.error_code, f"partition {tp}", str(tp), p.error_message)
                errors[tp] = error if p.error_code else None
        return errors

    async def list_partition_reassignments(
        self, tps: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, OngoingReassignment]:
        """Return the running moves of these partitions (None: of all)."""
        topics = None
        if tps is not None:
            topics = [
                ListPartitionReassignmentsTopics(name=name, partition_indexes=partitions)
                for name, partitions in by_topic(tps).items()
            ]
        request = ListPartitionReassignmentsRequest(topics=topics, timeout_ms=self._timeout_ms)
        response: ListPartitionReassignmentsResponse = await self._ask_controller(request)
        if response.error_code:
            raise error_for(response.error_code, response.error_message or "listing reassignments")
        return {
            TopicPartition(topic.name, p.partition_index): OngoingReassignment(
                p.replicas, p.adding_replicas, p.removing_replicas
            )
            for topic in response.topics
            for p in topic.partitions
        }


def _reassignable(partition: int, replicas: Sequence[int] | None) -> ReassignablePartition:
    return ReassignablePartition(
        partition_index=partition, replicas=None if replicas is None else list(replicas)
    )
