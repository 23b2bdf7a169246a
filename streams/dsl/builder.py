"""`StreamsBuilder`: where a topology begins, and the plumbing streams and tables share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streams.dsl.internal_builder import InternalStreamsBuilder
from streams.dsl.nouns import KStream, KTable
from streams.dsl.options import Consumed, Materialized, as_materialized, options_with
from streams.dsl.stream import Stream
from streams.dsl.table import table_of_updates
from streams.graph import Graph, OffsetReset, SourceNode, TimestampExtractor
from streams.serdes import SerdeLike, serde_for
from streams.state import StoreSpec
from streams.topology import Topology


class StreamsBuilder:
    """Collects a program's streams and tables; `build` makes the topology of them.

    ``key_serde`` and ``value_serde`` are used wherever an operator needs one and none is known.
    """

    def __init__(self, *, key_serde: SerdeLike | None = None, value_serde: SerdeLike | None = None) -> None:
        self._internal = InternalStreamsBuilder(Graph(), serde_for(key_serde), serde_for(value_serde))

    def stream(
        self,
        topics: str | Sequence[str],
        consumed: Consumed | None = None,
        *,
        key_serde: SerdeLike | None = None,
        value_serde: SerdeLike | None = None,
        timestamp_extractor: TimestampExtractor | None = None,
        reset: OffsetReset | None = None,
        name: str | None = None,
    ) -> KStream[Any, Any]:
        """Read one topic or several as a stream."""
        options = options_with(
            consumed,
            Consumed,
            key_serde=key_serde,
            value_serde=value_serde,
            timestamp_extractor=timestamp_extractor,
            reset=reset,
            name=name,
        )
        names = (topics,) if isinstance(topics, str) else tuple(topics)
        return KStream(self._source(names, options))

    def table(
        self,
        topic: str,
        consumed: Consumed | None = None,
        *,
        key_serde: SerdeLike | None = None,
        value_serde: SerdeLike | None = None,
        timestamp_extractor: TimestampExtractor | None = None,
        name: str | None = None,
        store: str | Materialized | None = None,
    ) -> KTable[Any, Any]:
        """Read a topic as a table: the last value per key; a null value deletes. Null keys are dropped."""
        options = options_with(
            consumed,
            Consumed,
            key_serde=key_serde,
            value_serde=value_serde,
            timestamp_extractor=timestamp_extractor,
            name=name,
        )
        materialized = as_materialized(store)
        store_name = materialized.name or f"{topic}-{self._internal.names.store('')}"
        source = self._source((topic,), options, "-source")
        spec = self._internal.store_spec(
            store_name,
            materialized,
            key_serde=source.key_serde,
            value_serde=source.value_serde,
            node=source.node,
        )
        node = self._internal.names.node("KTABLE-SOURCE-", options.name)
        return KTable(table_of_updates(source, node, spec, materialized))

    def add_store(self, spec: StoreSpec) -> None:
        """Add a store for processors of your own; name it in `KStream.process(stores=...)`."""
        self._internal.graph.add_store(spec)

    def build(self) -> Topology:
        """The finished topology; raises TopologyError for what cannot work."""
        return Topology(self._internal.graph).finished()

    def _source(self, topics: tuple[str, ...], options: Consumed, suffix: str = "") -> Stream:
        name = self._internal.names.node("KSTREAM-SOURCE-", options.name, suffix)
        node = SourceNode(
            name=name,
            topics=topics,
            key_serde=self._internal.key_serde(name, options.key_serde),
            value_serde=self._internal.value_serde(name, options.value_serde),
            timestamp_extractor=options.timestamp_extractor,
            reset=options.reset,
        )
        self._internal.graph.add(node)
        return Stream(
            builder=self._internal,
            node=name,
            sources=frozenset({name}),
            key_serde=node.key_serde,
            value_serde=node.value_serde,
        )
