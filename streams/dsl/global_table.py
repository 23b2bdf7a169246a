"""`GlobalTable`: a topic that every instance holds whole, its nodes, and the join of a stream with it.

A `GlobalKTable` (`nouns.global_ktable`) holds one. No task runs its nodes: who keeps the store is the runtime
(`streams.runtime.restore.global_stores`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from streams.dsl.arity import joiner_takes_key
from streams.dsl.internal_builder import InternalStreamsBuilder
from streams.dsl.options import Consumed, Materialized
from streams.dsl.stream import Stream
from streams.errors import TopologyError
from streams.graph import SourceNode
from streams.processors.joins.joiner import with_key
from streams.processors.joins.lookup_join import join_selected
from streams.processors.stateless.stateless import pass_through
from streams.processors.tables.table import StoreView
from streams.state import StoreSpec


@dataclass(frozen=True, slots=True)
class GlobalTable:
    """A global table: the store it is read from."""

    builder: InternalStreamsBuilder
    store: StoreSpec

    @classmethod
    def of(
        cls, builder: InternalStreamsBuilder, topic: str, options: Consumed, materialized: Materialized
    ) -> GlobalTable:
        """Add the nodes of a global table."""
        if materialized.history_retention is not None:
            raise TopologyError("a global table cannot be versioned: leave out history_retention=")
        names = builder.names
        store_name = materialized.name or f"{topic}-{names.store('')}"
        source = SourceNode(
            name=names.node("KSTREAM-SOURCE-", options.name, "-source"),
            topics=(topic,),
            key_serde=builder.key_serde(topic, options.key_serde, materialized.key_serde),
            value_serde=builder.value_serde(topic, options.value_serde, materialized.value_serde),
            timestamp_extractor=options.timestamp_extractor,
            is_global=True,
        )
        spec = builder.store_spec(
            store_name,
            replace(materialized, caching=False, logging=False),  # the topic is its changelog
            key_serde=source.key_serde,
            value_serde=source.value_serde,
            node=source.name,
        )
        node = names.node("KTABLE-SOURCE-", options.name)
        builder.graph.add(source)
        builder.graph.add_store(spec)
        builder.add_processor(node, (source.name,), pass_through(), (spec.name,))
        return cls(builder, spec)

    def joined(
        self,
        stream: Stream,
        key_selector: Callable[[Any, Any], Any] | None,
        joiner: Callable[..., Any],
        name: str | None,
        *,
        left: bool,
    ) -> Stream:
        """Add a node that joins a stream with this table; the stream that leaves it."""
        if key_selector is None:
            raise TopologyError(
                "a stream is joined with a global table by key_selector=, a function of (key, value) that "
                "gives the table's key"
            )
        if stream.builder is not self.builder:
            raise TopologyError("a stream and a global table that are joined come of one StreamsBuilder")
        joined = with_key(joiner, takes_key=joiner_takes_key(joiner))
        operator = join_selected(StoreView(self.store.name), key_selector, joined, left=left)
        # Kafka has one name for both kinds.
        return stream.then("KSTREAM-LEFTJOIN-", name, operator, takes_null_keys=left).with_new_values()
