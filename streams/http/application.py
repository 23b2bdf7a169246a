"""The interface of an application that the view needs; `KafkaStreams` implements it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum
from typing import Any, Protocol

from kafka_client.metrics.metrics import Metrics
from streams.config import StreamsConfig
from streams.queries import (
    Answer,
    HostInfo,
    KeyQueryMetadata,
    PositionBound,
    StateQueryResult,
    StreamsMetadata,
)
from streams.queries.query import Query
from streams.topology import Topology


class Application(Protocol):
    """An instance of an application. All methods are called in its event loop."""

    topology: Topology
    config: StreamsConfig
    registry: Metrics

    @property
    def state(self) -> Enum:
        """The state of the instance."""
        ...

    @property
    def is_paused(self) -> bool:
        """True if the instance is paused and processes nothing."""
        ...

    @property
    def host(self) -> HostInfo | None:
        """The address of the instance for others, None if unknown."""
        ...

    def summary(self) -> dict[str, Any]:
        """Return the instance's tasks and counters."""
        ...

    def task_facts(self) -> list[dict[str, Any]]:
        """Return the progress of each task of this instance, copies included."""
        ...

    async def lags(self) -> Mapping[Any, tuple[int, int]]:
        """Return position and log end offset of each input partition; asks the brokers."""
        ...

    def metadata_for_all_streams_clients(self) -> list[StreamsMetadata]:
        """Return the tasks, stores and partitions of each instance."""
        ...

    def query_metadata_for_key(self, store: str, key: Any) -> KeyQueryMetadata:
        """Return the instances that have a key."""
        ...

    def query_metadata_for_partition(self, store: str, partition: int) -> KeyQueryMetadata:
        """Return the instances that have a partition."""
        ...

    def partitions_of_store(self, store: str) -> int:
        """Return the number of a store's partitions."""
        ...

    def query(
        self,
        name: str,
        query: Query,
        *,
        partitions: Collection[int] | None = None,
        position_bound: PositionBound | None = None,
        require_active: bool = False,
    ) -> Answer[StateQueryResult]:
        """Query a store of this instance."""
        ...
