"""`Grouping`: a stream grouped by key, perhaps by window too, and the tables that aggregations make of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from streams.dsl.options import Grouped, Materialized
from streams.dsl.stream import Stream
from streams.dsl.table import Table, always_told, put_in_store
from streams.errors import TopologyError
from streams.processors import aggregate as operators
from streams.processors.windows import TimeWindows, milliseconds
from streams.serdes import SerdeLike, TimeWindowed, serde_for
from streams.state import StoreSpec


class Grouping:
    """What all aggregations of one grouping share; its name goes to their repartition topic."""

    def __init__(
        self,
        stream: Stream,
        name: str | None,
        windows: TimeWindows | None = None,
        behind_topic: list[Stream] | None = None,
    ) -> None:
        self.stream = stream
        self._name = name
        self._windows = windows
        self._behind_topic = [] if behind_topic is None else behind_topic
        """The stream read back from the topic that the user named: all aggregations share it."""

    @classmethod
    def of(cls, stream: Stream, options: Grouped) -> Grouping:
        """A stream grouped as the options say."""
        key_serde = serde_for(options.key_serde) or stream.key_serde
        value_serde = serde_for(options.value_serde) or stream.value_serde
        return cls(replace(stream, key_serde=key_serde, value_serde=value_serde), options.name)

    def windowed_by(self, windows: TimeWindows) -> Grouping:
        """The same grouping, by window as well. May be called once."""
        if self._windows is not None:
            raise TopologyError("the stream is windowed already")
        return Grouping(self.stream, self._name, windows, self._behind_topic)

    def aggregated(
        self,
        prefix: str,
        aggregation: operators.Aggregation,
        value_serde: SerdeLike | None,
        name: str | None,
        materialized: Materialized,
    ) -> Table:
        """The table of an aggregation's results."""
        builder = self.stream.builder
        store_name = materialized.name or builder.names.store(prefix)
        node = builder.names.node(prefix, name)
        spec = builder.store_spec(
            store_name,
            materialized,
            key_serde=self.stream.key_serde,
            value_serde=value_serde,
            node=node,
            **self._span(store_name, materialized),
        )
        old_values = always_told()
        operator = (
            operators.aggregate(store_name, aggregation, old_values)
            if self._windows is None
            else operators.aggregate_windows(store_name, self._windows, aggregation, old_values)
        )
        parent = self._repartitioned(spec)
        table = put_in_store(
            parent,
            node,
            spec,
            lambda store: operator,
            old_values=old_values,
            grace_ms=None if self._windows is None else self._windows.grace_ms,
        )
        if self._windows is None:
            return table
        key_serde = TimeWindowed(spec.key_serde, self._windows.size_ms)
        return replace(table, stream=replace(table.stream, key_serde=key_serde))

    def _repartitioned(self, spec: StoreSpec) -> Stream:
        """The stream to aggregate, behind a repartition topic if the key may have changed."""
        stream, builder = self.stream, self.stream.builder
        if not stream.rekeyed:
            return stream
        names = builder.names.repartition(self._name or spec.name)
        if self._behind_topic:
            builder.graph.move_to_end(names.filter, names.sink, names.source)
            return self._behind_topic[0]
        value_serde = builder.value_serde(names.source, stream.value_serde)
        found = stream.read_back(names, spec.key_serde, value_serde)
        if self._name is not None:
            self._behind_topic.append(found)
        return found

    def _span(self, name: str, materialized: Materialized) -> dict[str, Any]:
        if self._windows is None:
            if materialized.retention is not None:
                raise TopologyError(f"store {name}: retention is for windowed stores")
            return {}
        needed = self._windows.size_ms + self._windows.grace_ms
        retention = needed if materialized.retention is None else milliseconds(materialized.retention)
        if retention < needed:
            raise TopologyError(
                f"store {name}: retention is {retention} ms, windows and grace need at least {needed} ms"
            )
        return {"kind": "window", "window_size_ms": self._windows.size_ms, "retention_ms": retention}
