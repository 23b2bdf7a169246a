"""Admin calls about topics and the cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kafka_client.admin.base import AdminBase
from kafka_client.cluster.answers import refusal
from kafka_client.cluster.metadata import NO_NODE, BrokerNode, ClusterMetadata, TopicMetadata
from kafka_client.errors import ErrorCode, KafkaError, RequestTimedOut, error_for
from kafka_client.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from kafka_client.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kafka_client.wire.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from kafka_client.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create; -1 leaves a number to the broker's default. `assignments`:
    partition → broker ids.
    """

    name: str
    num_partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = field(default_factory=dict)
    assignments: Mapping[int, Sequence[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """The cluster's id, controller and brokers."""

    cluster_id: str
    controller_id: int
    brokers: Sequence[BrokerNode]


class TopicAdmin(AdminBase):
    """Topics and the cluster; see `admin.Admin`."""

    async def create_topics(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False, exist_ok: bool = False
    ) -> None:
        """Create topics and wait until metadata shows them with leaders. `exist_ok`: existing ones are fine.

        All are tried. Raises the first error then.
        """
        new = list(topics)
        if not new:
            return
        request = CreateTopicsRequest(
            topics=[_creatable(topic) for topic in new],
            timeout_ms=self._timeout_ms,
            validate_only=validate_only,
        )
        response: CreateTopicsResponse = await self._ask_controller(request)
        errors = _topic_errors((t.name, t.error_code, t.error_message) for t in response.topics)
        if exist_ok:
            errors = {n: e for n, e in errors.items() if e.code != ErrorCode.TOPIC_ALREADY_EXISTS}
        if not validate_only:
            names = [topic.name for topic in new if topic.name not in errors]
            await self._until_visible(
                names, lambda metadata: all(_has_leaders(metadata.topics.get(name)) for name in names)
            )
        _raise_first(errors.values())

    async def delete_topics(self, names: Iterable[str], *, missing_ok: bool = False) -> None:
        """Delete topics and wait until metadata no longer shows them.

        All are tried. Raises the first error then.
        """
        unique = list(dict.fromkeys(names))  # brokers refuse a topic that is named twice
        if not unique:
            return
        request = DeleteTopicsRequest(
            topics=[DeleteTopicState(name=name) for name in unique],
            topic_names=unique,
            timeout_ms=self._timeout_ms,
        )
        response: DeleteTopicsResponse = await self._ask_controller(request)
        errors = _topic_errors((t.name, t.error_code, t.error_message) for t in response.responses)
        if missing_ok:
            errors = {n: e for n, e in errors.items() if e.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        deleted = [name for name in unique if name not in errors]
        await self._until_visible(
            deleted, lambda metadata: not any(name in metadata.topics for name in deleted)
        )
        _raise_first(errors.values())

    async def create_partitions(
        self,
        counts: Mapping[str, int],
        *,
        assignments: Mapping[str, Sequence[Sequence[int]]] | None = None,
        validate_only: bool = False,
    ) -> None:
        """Raise topics' partition counts to these totals and wait until metadata shows them.

        `assignments`: by topic, the broker ids of each new partition, where the cluster is not to choose.
        `validate_only`: raise the errors that would be raised, and change nothing.
        """
        request = CreatePartitionsRequest(
            topics=[_grown(name, count, (assignments or {}).get(name)) for name, count in counts.items()],
            timeout_ms=self._timeout_ms,
            validate_only=validate_only,
        )
        response: CreatePartitionsResponse = await self._ask_controller(request)
        errors = _topic_errors((t.name, t.error_code, t.error_message) for t in response.results)
        grown = {n: count for n, count in counts.items() if n not in errors and not validate_only}

        def visible(metadata: ClusterMetadata) -> bool:
            topics = ((metadata.topics.get(name), count) for name, count in grown.items())
            return all(
                t is not None and t.partition_count >= count and _has_leaders(t) for t, count in topics
            )

        await self._until_visible(list(grown), visible)
        _raise_first(errors.values())

    async def describe_topics(self, names: Iterable[str]) -> dict[str, TopicMetadata]:
        """Return fresh metadata of the topics.

        Raises KafkaError UNKNOWN_TOPIC_OR_PARTITION, which names the topic, if one does not exist.
        """
        return dict((await self._client.metadata(names, refresh=True)).topics)

    async def list_topics(self) -> dict[str, TopicMetadata]:
        """Return fresh metadata of every topic, internal ones included."""
        return dict((await self._client.metadata(refresh=True)).topics)

    async def describe_cluster(self) -> ClusterDescription:
        """Return the cluster's id, controller and brokers."""

        async def ask() -> ClusterDescription:
            response: DescribeClusterResponse = await self._client.request(DescribeClusterRequest())
            if response.error_code:
                raise error_for(response.error_code, response.error_message or "DescribeCluster")
            brokers = [BrokerNode(b.broker_id, b.host, b.port, b.rack) for b in response.brokers]
            return ClusterDescription(response.cluster_id, response.controller_id, brokers)

        return await self._client.retrying(ask, timeout_ms=self._timeout_ms)

    async def _until_visible(self, names: list[str], visible: Callable[[ClusterMetadata], bool]) -> None:
        """Ask for metadata until `visible` is true of it. Raises RequestTimedOut, which names the topics."""
        if not names:
            return
        try:
            async with asyncio.timeout(self._timeout_ms / 1000):
                backoff = self._client.backoff()
                while True:
                    if visible(await self._client.metadata(names, refresh=True, allow_missing=True)):
                        return
                    await asyncio.sleep(backoff.next())
        except TimeoutError:
            raise RequestTimedOut(f"metadata does not show the change of {', '.join(names)}") from None


def _creatable(topic: NewTopic) -> CreatableTopic:
    assigned = topic.assignments
    return CreatableTopic(
        name=topic.name,
        num_partitions=-1 if assigned else topic.num_partitions,
        replication_factor=-1 if assigned else topic.replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=p, broker_ids=list(ids)) for p, ids in assigned.items()
        ],
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in topic.configs.items()],
    )


def _grown(name: str, count: int, assigned: Sequence[Sequence[int]] | None) -> CreatePartitionsTopic:
    assignments = None
    if assigned is not None:
        assignments = [CreatePartitionsAssignment(broker_ids=list(ids)) for ids in assigned]
    return CreatePartitionsTopic(name=name, count=count, assignments=assignments)


def _has_leaders(topic: TopicMetadata | None) -> bool:
    return topic is not None and all(p.leader != NO_NODE for p in topic.partitions.values())


def _topic_errors(results: Iterable[tuple[str | None, int, str | None]]) -> dict[str, KafkaError]:
    return {
        name or "": refusal(code, f"topic {name!r}", name or "", message)
        for name, code, message in results
        if code
    }


def _raise_first(errors: Iterable[KafkaError]) -> None:
    for error in errors:
        raise error
