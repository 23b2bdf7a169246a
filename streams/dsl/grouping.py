"""`Grouping`: a stream grouped by key, perhaps by window too, and the tables that aggregations make of it."""

from __future__ import annotations

from dataclasses import replace

from streams.dsl.options import Grouped, Materialized
from streams.dsl.stream import Stream
from streams.dsl.table import Table, always_told, put_in_store
from streams.dsl.windowing import NO_WINDOWS, Windowing
from streams.graph.names import RepartitionNames
from streams.processors.aggregates.aggregate import Aggregation
from streams.serdes import SerdeLike, serde_for
from streams.state import StoreSpec


class Grouping:
    """A grouped stream, which its aggregations share; its name goes to their repartition topic."""

    def __init__(
        self,
        stream: Stream,
        name: str | None,
        windowing: Windowing = NO_WINDOWS,
        behind_topic: list[Stream] | None = None,
    ) -> None:
        self.stream = stream
        self.name = name
        self.windowing = windowing
        self._behind_topic = [] if behind_topic is None else behind_topic
        """The stream read back from the topic that the user named: all aggregations and cogroups share it."""

    @classmethod
    def of(cls, stream: Stream, options: Grouped) -> Grouping:
        """Return the grouping of a stream with these options."""
        key_serde = serde_for(options.key_serde) or stream.key_serde
        value_serde = serde_for(options.value_serde) or stream.value_serde
        return cls(replace(stream, key_serde=key_serde, value_serde=value_serde), options.name)

    def windowed_by(self, windowing: Windowing) -> Grouping:
        """Return the same grouping, by window as well."""
        return Grouping(self.stream, self.name, windowing, self._behind_topic)

    def aggregated(
        self,
        prefix: str,
        aggregation: Aggregation,
        value_serde: SerdeLike | None,
        name: str | None,
        materialized: Materialized,
    ) -> Table:
        """Return the table of an aggregation's results."""
        builder = self.stream.builder
        store_name = materialized.name or builder.names.store(prefix)
        node = builder.names.node(prefix, name)
        spec = builder.store_spec(
            store_name,
            materialized,
            key_serde=self.stream.key_serde,
            value_serde=value_serde,
            node=node,
            **self.windowing.span(store_name, materialized),
        )
        old_values = always_told()
        operator = self.windowing.operator(store_name, aggregation, old_values)
        parent, spec = self._repartitioned(spec), self.windowing.store_spec(spec)
        table = put_in_store(
            parent,
            node,
            spec,
            lambda store: operator,
            old_values=old_values,
            grace_ms=self.windowing.closing_ms,
        )
        key_serde = self.windowing.key_serde(spec.key_serde)
        return replace(table, stream=replace(table.stream, key_serde=key_serde))

    def _repartitioned(self, spec: StoreSpec) -> Stream:
        """Return the stream to aggregate, behind a repartition topic if the key may have changed."""
        stream, builder = self.stream, self.stream.builder
        if not stream.rekeyed:
            return stream
        names = builder.names.repartition(self.name or spec.name)
        if (behind_topic := self.behind_topic) is not None:
            builder.graph.move_to_end(names.filter, names.sink, names.source)
            return behind_topic
        return self.read_back(names, spec)

    @property
    def behind_topic(self) -> Stream | None:
        """The stream read back from the topic that the user named, if it was needed already."""
        return self._behind_topic[0] if self._behind_topic else None

    def read_back(self, names: RepartitionNames, spec: StoreSpec) -> Stream:
        """Return the stream behind a new repartition topic, which is shared if the user named it."""
        stream, builder = self.stream, self.stream.builder
        value_serde = builder.value_serde(names.source, stream.value_serde)
        behind_topic = stream.read_back(names, spec.key_serde, value_serde)
        if self.name is not None:
            self._behind_topic.append(behind_topic)
        return behind_topic
