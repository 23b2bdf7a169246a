"""`Grouping`: a stream grouped by key, perhaps by window too, and the tables that aggregations make of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeAlias, get_args

from streams.dsl.options import Grouped, Materialized
from streams.dsl.stream import Stream
from streams.dsl.table import Table, always_told, put_in_store
from streams.errors import TopologyError
from streams.processors.aggregate import Aggregation, aggregate
from streams.processors.aggregate_sessions import aggregate_sessions
from streams.processors.aggregate_sliding import aggregate_sliding
from streams.processors.aggregate_windows import aggregate_windows
from streams.processors.table import OldValues
from streams.processors.windows import (
    EmitStrategy,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    UnlimitedWindows,
    milliseconds,
)
from streams.processors.wiring import Operator
from streams.serdes import Serde, SerdeLike, SessionWindowed, TimeWindowed, serde_for
from streams.state import StoreSpec

Windows: TypeAlias = TimeWindows | SlidingWindows | SessionWindows | UnlimitedWindows


class Grouping:
    """What all aggregations of one grouping share; its name goes to their repartition topic."""

    def __init__(
        self,
        stream: Stream,
        name: str | None,
        windows: Windows | None = None,
        emit: EmitStrategy = "on_window_update",
        behind_topic: list[Stream] | None = None,
    ) -> None:
        self.stream = stream
        self._name = name
        self._windows = windows
        self._emit: EmitStrategy = emit
        self._behind_topic = [] if behind_topic is None else behind_topic
        """The stream read back from the topic that the user named: all aggregations share it."""

    @classmethod
    def of(cls, stream: Stream, options: Grouped) -> Grouping:
        """A stream grouped as the options say."""
        key_serde = serde_for(options.key_serde) or stream.key_serde
        value_serde = serde_for(options.value_serde) or stream.value_serde
        return cls(replace(stream, key_serde=key_serde, value_serde=value_serde), options.name)

    def windowed_by(self, windows: Windows, emit: EmitStrategy | None) -> Grouping:
        """The same grouping, by window as well."""
        if not isinstance(windows, get_args(Windows)):
            kinds = ", ".join(each.__name__ for each in get_args(Windows))
            raise TopologyError(f"windowed_by() takes one of {kinds}, not {windows!r}")
        grouping = Grouping(self.stream, self._name, windows, behind_topic=self._behind_topic)
        return grouping.emitting(emit or "on_window_update")

    @property
    def is_sliding(self) -> bool:
        """Whether it is by sliding windows, of which Kafka counts names otherwise."""
        return isinstance(self._windows, SlidingWindows)

    def emitting(self, emit: EmitStrategy) -> Grouping:
        """The same grouping, whose results go on at other times."""
        if emit not in get_args(EmitStrategy):
            kinds = " or ".join(get_args(EmitStrategy))
            raise TopologyError(f"emit_strategy is {emit!r}, it may be {kinds}")
        if emit == "on_window_close" and isinstance(self._windows, UnlimitedWindows):
            raise TopologyError("emit_strategy is on_window_close, but UnlimitedWindows never close")
        return Grouping(self.stream, self._name, self._windows, emit, self._behind_topic)

    def aggregated(
        self,
        prefix: str,
        aggregation: Aggregation,
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
        operator = self._operator(store_name, aggregation, old_values)
        parent, spec = self._repartitioned(spec), self._kept(spec)
        table = put_in_store(
            parent,
            node,
            spec,
            lambda store: operator,
            old_values=old_values,
            grace_ms=None if self._windows is None else self._windows.closing_ms,
        )
        key_serde = self._windowed_serde(spec.key_serde)
        return replace(table, stream=replace(table.stream, key_serde=key_serde))

    def _operator(self, store_name: str, aggregation: Aggregation, old_values: OldValues) -> Operator:
        match self._windows:
            case None:
                return aggregate(store_name, aggregation, old_values)
            case SessionWindows():
                return aggregate_sessions(store_name, self._windows, aggregation, self._emit, old_values)
            case SlidingWindows():
                return aggregate_sliding(store_name, self._windows, aggregation, self._emit, old_values)
            case _:
                return aggregate_windows(store_name, self._windows, aggregation, self._emit, old_values)

    def _windowed_serde(self, key_serde: Serde[Any]) -> Serde[Any]:
        match self._windows:
            case None:
                return key_serde
            case SessionWindows():
                return SessionWindowed(key_serde)
            case SlidingWindows():
                return TimeWindowed(key_serde, self._windows.time_difference_ms)
            case _:
                return TimeWindowed(key_serde, self._windows.size_ms)

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
        """What of the store's spec has to do with time."""
        windows = self._windows
        if windows is None:
            if materialized.retention is not None:
                raise TopologyError(f"store {name}: retention is for windowed stores")
            return {}
        needed = windows.retention_ms
        retention = needed if materialized.retention is None else milliseconds(materialized.retention)
        if retention < needed:
            raise TopologyError(
                f"store {name}: retention is {retention} ms, windows and grace need at least {needed} ms"
            )
        span: dict[str, Any] = {"kind": "window", "retention_ms": retention}
        match windows:
            case SessionWindows():
                return span | {"kind": "session", "lookback_ms": windows.inactivity_gap_ms}
            case SlidingWindows():
                difference = windows.time_difference_ms
                return span | {"window_size_ms": difference, "lookback_ms": 2 * difference}
            case _:
                return span | {"window_size_ms": windows.size_ms}

    def _kept(self, spec: StoreSpec) -> StoreSpec:
        """The store's spec, as emission on window close needs it.

        Kafka has no cache then, but for time windows; what is found past retention depends on it.
        """
        if self._emit == "on_window_update":
            return spec
        return replace(spec, by_time=True, cached=spec.cached and isinstance(self._windows, TimeWindows))
