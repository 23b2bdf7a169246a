"""`StreamsBuilder`: where a topology begins, and the plumbing streams and tables share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streams.dsl.kept import table_of_updates
from streams.dsl.nouns import KStream, KTable
from streams.dsl.options import Consumed, Materialized, materialized, settle
from streams.dsl.strand import Strand
from streams.dsl.weaver import Weaver
from streams.graph import Graph, OffsetReset, SourceNode, TimestampExtractor
from streams.serdes import SerdeLike, serde_for
from streams.state import StoreSpec
from streams.topology import Topology


class StreamsBuilder:
    """Collects a program's streams and tables; `build` makes the topology of them.

    ``key_serde`` and ``value_serde`` are used wherever an operator needs one and none is known.
    """

    def __init__(self, *, key_serde: SerdeLike | None = None, value_serde: SerdeLike | None = None) -> None:
        self._weaver = Weaver(Graph(), serde_for(key_serde), serde_for(value_serde))

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
        options = settle(
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
        options = settle(
            consumed,
            Consumed,
            key_serde=key_serde,
            value_serde=value_serde,
            timestamp_extractor=timestamp_extractor,
            name=name,
        )
        kept = materialized(store)
        store_name = kept.name or f"{topic}-{self._weaver.names.store('')}"
        source = self._source((topic,), options)
        spec = self._weaver.store_spec(
            store_name,
            kept,
            key_serde=source.key_serde,
            value_serde=source.value_serde,
            node=source.node,
        )
        node = self._weaver.names.node("KTABLE-SOURCE-")
        return KTable(table_of_updates(source, node, spec, kept))

    def add_store(self, spec: StoreSpec) -> None:
        """Add a store for processors of your own; name it in `KStream.process(stores=...)`."""
        self._weaver.graph.add_store(spec)

    def build(self) -> Topology:
        """The finished topology; raises TopologyError for what cannot work."""
        return Topology(self._weaver.graph)

    def _source(self, topics: tuple[str, ...], options: Consumed) -> Strand:
        name = self._weaver.names.node("KSTREAM-SOURCE-", options.name)
        node = SourceNode(
            name=name,
            topics=topics,
            key_serde=self._weaver.key_serde(name, options.key_serde),
            value_serde=self._weaver.value_serde(name, options.value_serde),
            timestamp_extractor=options.timestamp_extractor,
            reset=options.reset,
        )
        self._weaver.graph.add(node)
        return Strand(
            weaver=self._weaver,
            node=name,
            sources=frozenset({name}),
            key_serde=node.key_serde,
            value_serde=node.value_serde,
        )
