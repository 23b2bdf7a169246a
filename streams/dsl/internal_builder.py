"""`InternalStreamsBuilder`: the graph under construction, default serdes and repartition topics.

Streams, tables and groupings of one `StreamsBuilder` share it, as in Kafka Streams.
"""

from __future__ import annotations

import re
from typing import Any

from streams.dsl.options import Materialized, keeping
from streams.errors import TopologyError
from streams.graph import (
    Graph,
    Names,
    ProcessorNode,
    Repartition,
    RepartitionNames,
    SinkNode,
    SourceNode,
    StreamPartitioner,
)
from streams.processors.stateless.stateless import drop_null_keys
from streams.processors.windowing.windows import milliseconds
from streams.processors.wiring import Operator
from streams.serdes import Serde, SerdeLike, serde_for
from streams.state import StoreKind, StoreSpec


class InternalStreamsBuilder:
    """A builder's graph, with methods that add to it."""

    def __init__(self, graph: Graph, key_serde: Serde[Any] | None, value_serde: Serde[Any] | None) -> None:
        self.graph = graph
        self._key_serde = key_serde
        self._value_serde = value_serde
        self.stream_sources: dict[frozenset[str] | re.Pattern[str], SourceNode] = {}
        """By what they read: `stream()` of the same topics again is read from the same source."""

    @property
    def names(self) -> Names:
        """The builder's name counter."""
        return self.graph.names

    @property
    def default_value_serde(self) -> Serde[Any] | None:
        """The builder's own value serde."""
        return self._value_serde

    def add_processor(
        self,
        name: str,
        parents: tuple[str, ...],
        operator: Operator,
        stores: tuple[str, ...] = (),
        *,
        takes_null_keys: bool = False,
    ) -> str:
        """Add a node that runs an operator; returns its name."""
        self.graph.add(
            ProcessorNode(
                name=name,
                parents=parents,
                operator=operator,
                stores=list(stores),
                takes_null_keys=takes_null_keys,
            )
        )
        return name

    def key_serde(self, node: str, *serdes: SerdeLike | None) -> Serde[Any]:
        """Return the first key serde that is not None, else the builder's.

        Raises TopologyError if there is none.
        """
        return _first(node, "key", (*serdes, self._key_serde))

    def value_serde(self, node: str, *serdes: SerdeLike | None) -> Serde[Any]:
        """Return the first value serde that is not None, else the builder's.

        Raises TopologyError if there is none.
        """
        return _first(node, "value", (*serdes, self._value_serde))

    def store_spec(
        self,
        name: str,
        materialized: Materialized,
        *,
        key_serde: SerdeLike | None,
        value_serde: SerdeLike | None,
        node: str,
        kind: StoreKind = "key_value",
        window_size_ms: int = 0,
        retention_ms: int = 0,
        lookback_ms: int = 0,
    ) -> StoreSpec:
        """Return the spec of the store that `Materialized` describes; these serdes are its defaults."""
        history, interval = materialized.history_retention, materialized.segment_interval
        if history is not None:
            if kind != "key_value":
                raise TopologyError(f"store {name}: history_retention is for stores without windows")
            kind = "versioned_key_value"
        # Kafka's suppliers have no versioned stores: they are in memory only if the program says so.
        persistent = materialized.persistent if history is None else materialized.persistent is not False
        return StoreSpec(
            name=name,
            kind=kind,
            key_serde=self.key_serde(node, materialized.key_serde, key_serde),
            value_serde=self.value_serde(node, materialized.value_serde, value_serde),
            **keeping(persistent),
            logged=materialized.logging,
            cached=materialized.caching,
            window_size_ms=window_size_ms,
            retention_ms=retention_ms,
            lookback_ms=lookback_ms,
            history_retention_ms=None if history is None else milliseconds(history),
            segment_interval_ms=0 if interval is None else milliseconds(interval),
            changelog_config=materialized.changelog_config,
        )

    def repartition(
        self,
        parent: str,
        names: RepartitionNames,
        *,
        key_serde: Serde[Any],
        value_serde: Serde[Any],
        partitions: int | None = None,
        partitioner: StreamPartitioner | None = None,
        asked_for: bool = False,
    ) -> str:
        """Send a stream through a topic by its new key; returns the source it comes back from.

        Null keys go with it if a node behind it takes them (KIP-962). ``asked_for``: by the user, who has
        a topic of their own, whatever is optimized.
        """
        graph = self.graph
        if not asked_for:
            graph.repartitions[names.topic] = Repartition(names)
        keep = drop_null_keys(unless=lambda: graph.takes_null_keys(names.source))
        self.add_processor(names.filter, (parent,), keep)
        serdes: dict[str, Any] = {"key_serde": key_serde, "value_serde": value_serde}
        graph.add(
            SinkNode(
                name=names.sink,
                parents=(names.filter,),
                topic=names.topic,
                internal=True,
                partitioner=partitioner,
                **serdes,
            )
        )
        # From its start, whatever auto.offset.reset says: only this application writes the topic.
        graph.add(
            SourceNode(
                name=names.source,
                topics=(names.topic,),
                internal=True,
                reset="earliest",
                partitions=partitions,
                **serdes,
            )
        )
        return names.source


def _first(node: str, what: str, candidates: tuple[SerdeLike | None, ...]) -> Serde[Any]:
    for candidate in candidates:
        serde = serde_for(candidate)
        if serde is not None:
            return serde
    raise TopologyError(
        f"{node} needs a {what} serde and none is known: say {what}_serde= here, or in StreamsBuilder(); "
        f"StreamsBuilder(config) takes default.{what}.serde"
    )
