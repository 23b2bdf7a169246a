"""What the view needs of an application: `KafkaStreams` is one."""

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
    """One instance. Everything is called in its event loop."""

    topology: Topology
    config: StreamsConfig
    registry: Metrics

    @property
    def state(self) -> Enum:
        """What it is doing."""
        ...

    @property
    def is_paused(self) -> bool:
        """True if it is to process nothing."""
        ...

    @property
    def host(self) -> HostInfo | None:
        """Where it is reached."""
        ...

    def summary(self) -> dict[str, Any]:
        """Tasks and counters."""
        ...

    def task_facts(self) -> list[dict[str, Any]]:
        """Of each task here, copies too, how far it is."""
        ...

    async def lags(self) -> Mapping[Any, tuple[int, int]]:
        """Position and log end of each input, by partition; asks the brokers."""
        ...

    def metadata_for_all_streams_clients(self) -> list[StreamsMetadata]:
        """What each instance has."""
        ...

    def query_metadata_for_key(self, store: str, key: Any) -> KeyQueryMetadata:
        """Which instance has a key."""
        ...

    def query_metadata_for_partition(self, store: str, partition: int) -> KeyQueryMetadata:
        """Which instance has a partition."""
        ...

    def partitions_of_store(self, store: str) -> int:
        """How many a store has."""
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
        """Ask a store that is here."""
        ...
