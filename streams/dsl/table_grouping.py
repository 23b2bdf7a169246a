"""`TableGrouping`: a table grouped by a key of its values, and the tables that aggregations make of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from streams.dsl.options import Grouped, Materialized
from streams.dsl.stream import Stream
from streams.dsl.table import Table, always_told, put_in_store
from streams.graph import SinkNode, SourceNode, checked
from streams.processors.aggregates.aggregate import Aggregation
from streams.processors.aggregates.grouped_table import aggregate_changes, regroup
from streams.processors.tables.versioned import latest_only
from streams.serdes import Serde, SerdeLike, serde_for
from streams.serdes.change import ChangeSerde


class TableGrouping:
    """A grouped table, which its aggregations share; its name goes to their repartition topic."""

    def __init__(
        self, table: Table, selector: Callable[[Any, Any], tuple[Any, Any]], options: Grouped
    ) -> None:
        names, stream = table.stream.builder.names, table.stream
        node = names.node("KTABLE-SELECT-", options.name)
        operator = regroup(selector)
        if table.is_versioned:
            operator = latest_only(operator, counted=False)
        stream.builder.add_processor(node, (stream.node,), operator)
        table.old_values.ask(force=True)
        self._stream = replace(
            stream,
            node=node,
            # Not the table's: the selector made other keys and values.
            key_serde=serde_for(options.key_serde),
            value_serde=serde_for(options.value_serde),
        )
        self._name = options.name
        self._behind_topic: Stream | None = None
        self._topic_nodes: tuple[str, ...] = ()

    @property
    def value_serde(self) -> SerdeLike | None:
        """The serde of the values to aggregate."""
        return self._stream.value_serde

    def known_value_serde(self, node: str, option: SerdeLike | None) -> Serde[Any]:
        """Return the serde of one value to aggregate. Raises TopologyError if there is none."""
        return self._stream.builder.value_serde(node, option, self._stream.value_serde)

    def aggregated(
        self,
        prefix: str,
        aggregation: Aggregation,
        value_serde: SerdeLike | None,
        name: str | None,
        materialized: Materialized,
    ) -> Table:
        """Return the table of an aggregation's results."""
        builder, names = self._stream.builder, self._stream.builder.names
        store_name = materialized.name or names.store("KTABLE-AGGREGATE-")
        sink = names.node("KSTREAM-SINK-", name, "-sink")
        source = names.node("KSTREAM-SOURCE-", name, "-source")
        node = names.node(prefix, name)
        spec = builder.store_spec(
            store_name, materialized, key_serde=self._stream.key_serde, value_serde=value_serde, node=node
        )
        parent = self._repartitioned(sink, source, f"{self._name or store_name}-repartition")
        old_values = always_told()
        operator = aggregate_changes(store_name, aggregation, old_values)
        return put_in_store(parent, node, spec, lambda store: operator, old_values=old_values)

    def _repartitioned(self, sink: str, source: str, topic: str) -> Stream:
        """Return the updates, read back from a topic; aggregations share a topic that the user named."""
        stream, graph = self._stream, self._stream.builder.graph
        if self._behind_topic is not None and self._name is not None:
            # Kafka adds the nodes once more, which numbers the sub-topology behind them.
            graph.move_to_end(*self._topic_nodes)
            return self._behind_topic
        key_serde = stream.builder.key_serde(stream.node, stream.key_serde)
        serdes: dict[str, Any] = {
            "key_serde": key_serde,
            "value_serde": ChangeSerde(stream.builder.value_serde(stream.node, stream.value_serde)),
        }
        graph.add(SinkNode(name=sink, parents=(stream.node,), topic=checked(topic), internal=True, **serdes))
        # From its start, whatever auto.offset.reset says: only this application writes the topic.
        graph.add(SourceNode(name=source, topics=(topic,), internal=True, reset="earliest", **serdes))
        self._topic_nodes = (sink, source)
        self._behind_topic = Stream(
            builder=stream.builder, node=source, sources=frozenset({source}), **serdes
        )
        return self._behind_topic
