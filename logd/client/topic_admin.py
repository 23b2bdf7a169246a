"""Admin calls about topics, configs, offsets and the cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from logd.client.answers import about
from logd.client.cluster import Client
from logd.client.metadata import NO_NODE, BrokerNode, ClusterMetadata, TopicMetadata, TopicPartition
from logd.client.offsets import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    IsolationLevel,
    ListedOffset,
    all_or_first_error,
    by_leader,
    by_topic,
    list_offsets,
)
from logd.errors import ErrorCode, KafkaError, RequestTimedOut, error_for
from logd.wire import Message
from logd.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from logd.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from logd.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from logd.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from logd.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from logd.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from logd.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

OffsetSpec = str | int
""" "earliest", "latest", "max_timestamp", or a timestamp in ms."""

_SPECS: Mapping[str, int] = {"earliest": EARLIEST, "latest": LATEST, "max_timestamp": MAX_TIMESTAMP}

_RESULTS = ("topics", "responses", "results")
"""Where the controller's answers have their results, by API."""


class ResourceType(IntEnum):
    """What a config belongs to."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    GROUP = 32


class ConfigOp(IntEnum):
    """What IncrementalAlterConfigs does to a key (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


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
class ConfigEntry:
    """One config value; `source` as in DescribeConfigs (1 topic, 4 static broker, 5 default ...)."""

    name: str
    value: str | None
    source: int = -1
    read_only: bool = False
    sensitive: bool = False


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """The cluster's id, controller and brokers."""

    cluster_id: str
    controller_id: int
    brokers: Sequence[BrokerNode]


class TopicAdmin:
    """Topics, configs, offsets and the cluster; see `admin.Admin`."""

    def __init__(self, client: Client, *, timeout_ms: int = 30_000) -> None:
        self._client = client
        self._timeout_ms = timeout_ms

    # --- topics ---

    async def create_topics(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False, exist_ok: bool = False
    ) -> None:
        """Create topics and wait until metadata shows them with leaders. `exist_ok`: existing ones are fine.

        All are tried; then the first error is raised.
        """
        wanted = list(topics)
        if not wanted:
            return
        request = CreateTopicsRequest(
            topics=[_creatable(topic) for topic in wanted],
            timeout_ms=self._timeout_ms,
            validate_only=validate_only,
        )
        response: CreateTopicsResponse = await self._ask_controller(request)
        errors = _topic_errors((t.name, t.error_code, t.error_message) for t in response.topics)
        if exist_ok:
            errors = {n: e for n, e in errors.items() if e.code != ErrorCode.TOPIC_ALREADY_EXISTS}
        if not validate_only:
            names = [topic.name for topic in wanted if topic.name not in errors]
            await self._until_visible(
                names, lambda metadata: all(_has_leaders(metadata.topics.get(name)) for name in names)
            )
        _raise_first(errors.values())

    async def delete_topics(self, names: Iterable[str], *, missing_ok: bool = False) -> None:
        """Delete topics and wait until metadata no longer shows them. All are tried; then the first error
        is raised.
        """
        wanted = list(names)
        if not wanted:
            return
        request = DeleteTopicsRequest(
            topics=[DeleteTopicState(name=name) for name in wanted],
            topic_names=wanted,
            timeout_ms=self._timeout_ms,
        )
        response: DeleteTopicsResponse = await self._ask_controller(request)
        errors = _topic_errors((t.name, t.error_code, t.error_message) for t in response.responses)
        if missing_ok:
            errors = {n: e for n, e in errors.items() if e.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        gone = [name for name in wanted if name not in errors]
        await self._until_visible(gone, lambda metadata: not any(name in metadata.topics for name in gone))
        _raise_first(errors.values())

    async def create_partitions(self, counts: Mapping[str, int]) -> None:
        """Raise topics' partition counts to these totals and wait until metadata shows them."""
        request = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name=n, count=c, assignments=None) for n, c in counts.items()],
            timeout_ms=self._timeout_ms,
        )
        response: CreatePartitionsResponse = await self._ask_controller(request)
        errors = _topic_errors((t.name, t.error_code, t.error_message) for t in response.results)
        grown = {name: count for name, count in counts.items() if name not in errors}

        def visible(metadata: ClusterMetadata) -> bool:
            topics = ((metadata.topics.get(name), count) for name, count in grown.items())
            return all(
                t is not None and t.partition_count >= count and _has_leaders(t) for t, count in topics
            )

        await self._until_visible(list(grown), visible)
        _raise_first(errors.values())

    async def describe_topics(self, names: Iterable[str]) -> dict[str, TopicMetadata]:
        """Fresh metadata of the named topics; KafkaError UNKNOWN_TOPIC_OR_PARTITION naming one that is not
        there.
        """
        return dict((await self._client.metadata(names, refresh=True)).topics)

    async def list_topics(self) -> dict[str, TopicMetadata]:
        """Fresh metadata of every topic, internal ones included."""
        return dict((await self._client.metadata(refresh=True)).topics)

    async def describe_cluster(self) -> ClusterDescription:
        """The cluster's id, controller and brokers."""

        async def ask() -> ClusterDescription:
            response: DescribeClusterResponse = await self._client.request(DescribeClusterRequest())
            if response.error_code:
                raise error_for(response.error_code, response.error_message or "DescribeCluster")
            brokers = [BrokerNode(b.broker_id, b.host, b.port, b.rack) for b in response.brokers]
            return ClusterDescription(response.cluster_id, response.controller_id, brokers)

        return await self._client.retrying(ask, timeout_ms=self._timeout_ms)

    # --- configs ---

    async def describe_configs(
        self, name: str, type: ResourceType = ResourceType.TOPIC, *, keys: Sequence[str] | None = None
    ) -> dict[str, ConfigEntry]:
        """A resource's effective configs by key (`keys` None: all). A broker is named by its id."""
        resource = DescribeConfigsResource(
            resource_type=type, resource_name=name, configuration_keys=None if keys is None else list(keys)
        )

        async def ask() -> dict[str, ConfigEntry]:
            response: DescribeConfigsResponse = await self._client.request(
                DescribeConfigsRequest(resources=[resource]), node=_broker_of(name, type)
            )
            result = response.results[0]
            _raise_resource(result.error_code, result.error_message, name, type)
            return {
                c.name: ConfigEntry(c.name, c.value, c.config_source, c.read_only, c.is_sensitive)
                for c in result.configs
            }

        return await self._client.retrying(ask, timeout_ms=self._timeout_ms)

    async def incremental_alter_configs(
        self,
        name: str,
        changes: Mapping[str, str | tuple[ConfigOp, str] | None],
        type: ResourceType = ResourceType.TOPIC,
        *,
        validate_only: bool = False,
    ) -> None:
        """Change keys of a resource: to a value, None takes the key's own value away, (operation, value)
        for lists.
        """
        resource = AlterConfigsResource(
            resource_type=type,
            resource_name=name,
            configs=[_alterable(key, change) for key, change in changes.items()],
        )
        request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
        node = _broker_of(name, type)
        response: IncrementalAlterConfigsResponse
        if node is None:
            response = await self._ask_controller(request)
        else:
            response = await self._client.request(request, node=node)
        for result in response.responses:
            _raise_resource(result.error_code, result.error_message, name, type)

    # --- offsets ---

    async def list_offsets(
        self,
        specs: Mapping[TopicPartition, OffsetSpec],
        *,
        isolation_level: IsolationLevel = "read_uncommitted",
    ) -> dict[TopicPartition, ListedOffset]:
        """For each partition its "earliest", "latest" or "max_timestamp" offset, or the first at or after a
        time in ms.

        `offset` is -1 where no record is that young. With read_committed "latest" is the last stable offset.
        """
        wanted = {tp: spec if isinstance(spec, int) else _SPECS[spec] for tp, spec in specs.items()}
        return await list_offsets(
            self._client, wanted, isolation_level=isolation_level, timeout_ms=self._timeout_ms
        )

    async def delete_records(self, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Delete records before the offsets (-1: all); returns each partition's low watermark."""
        low: dict[TopicPartition, int] = {}

        async def ask(node: int, tps: list[TopicPartition]) -> None:
            topics = [
                DeleteRecordsTopic(
                    name=topic,
                    partitions=[
                        DeleteRecordsPartition(partition_index=p, offset=before[TopicPartition(topic, p)])
                        for p in partitions
                    ],
                )
                for topic, partitions in by_topic(tps).items()
            ]
            response: DeleteRecordsResponse = await self._client.request(
                DeleteRecordsRequest(topics=topics, timeout_ms=self._timeout_ms), node=node
            )
            results = [
                (TopicPartition(t.name, p.partition_index), p) for t in response.topics for p in t.partitions
            ]
            low.update({tp: p.low_watermark for tp, p in results if not p.error_code})
            _raise_first(
                error_for(p.error_code, f"deleting records of {tp}") for tp, p in results if p.error_code
            )

        async def attempt() -> None:
            nodes = await by_leader(self._client, [tp for tp in before if tp not in low])
            await all_or_first_error(ask(node, tps) for node, tps in nodes.items())

        await self._client.retrying(attempt, timeout_ms=self._timeout_ms)
        return low

    # --- asking ---

    async def _ask_controller(self, request: Message) -> Any:
        """Ask the controller, or any broker where the cluster names none (a broker passes such requests
        on).
        """

        async def ask() -> Any:
            metadata = await self._client.metadata(())
            known = metadata.controller_id in metadata.brokers
            response = await self._client.request(
                request,
                node=metadata.controller_id if known else None,
                timeout_ms=self._timeout_ms + self._client.request_timeout_ms,
            )
            _check_controller(response)
            return response

        return await self._client.retrying(ask, timeout_ms=self._timeout_ms)

    async def _until_visible(self, names: list[str], visible: Callable[[ClusterMetadata], bool]) -> None:
        """Ask for metadata until it shows what was done; RequestTimedOut naming the topics if it never
        does.
        """
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


def _alterable(key: str, change: str | tuple[ConfigOp, str] | None) -> AlterableConfig:
    if isinstance(change, tuple):
        return AlterableConfig(name=key, config_operation=change[0], value=change[1])
    operation = ConfigOp.DELETE if change is None else ConfigOp.SET
    return AlterableConfig(name=key, config_operation=operation, value=change)


def _has_leaders(topic: TopicMetadata | None) -> bool:
    return topic is not None and all(p.leader != NO_NODE for p in topic.partitions.values())


def _broker_of(name: str, type: ResourceType) -> int | None:
    """Brokers answer for their own configs only; anybody answers for the cluster's default ("")."""
    return int(name) if type in (ResourceType.BROKER, ResourceType.BROKER_LOGGER) and name else None


def _topic_errors(results: Iterable[tuple[str | None, int, str | None]]) -> dict[str, KafkaError]:
    return {
        name or "": error_for(code, about(f"topic {name!r}", name or "", message))
        for name, code, message in results
        if code
    }


def _raise_resource(code: int, message: str | None, name: str, type: ResourceType) -> None:
    if code:
        error = error_for(code, about(f"configs of {type.name.lower()} {name!r}", name, message))
        # A missing topic will not come by asking again: say so at once.
        missing = error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        raise KafkaError(error.code, error.message) if missing else error


def _check_controller(response: Any) -> None:
    """Raise StaleMetadata if whoever was asked is not the controller (any more)."""
    results = [result for name in _RESULTS for result in getattr(response, name, ())]
    if any(result.error_code == ErrorCode.NOT_CONTROLLER for result in results):
        raise error_for(ErrorCode.NOT_CONTROLLER, "the controller moved")


def _raise_first(errors: Iterable[KafkaError]) -> None:
    for error in errors:
        raise error
