"""`KGroupedStream` and `TimeWindowedKStream`: what can be counted, reduced and aggregated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from streams.dsl.options import Materialized, materialized
from streams.dsl.table import KTable, StoreOnDemand
from streams.dsl.weaver import Weaver
from streams.errors import TopologyError
from streams.graph import ProcessorNode
from streams.processors import aggregate as operators
from streams.processors.windows import TimeWindows, milliseconds
from streams.serdes import Long, Serde, SerdeLike, TimeWindowed
from streams.state import StoreSpec

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")


class KGroupedStream(Generic[K, V]):
    """A stream grouped by key; an aggregation makes a table of it."""

    def __init__(
        self,
        weaver: Weaver,
        node: str,
        sources: frozenset[str],
        *,
        key_serde: Serde[Any] | None,
        value_serde: Serde[Any] | None,
        rekeyed: bool,
        name: str | None,
        windows: TimeWindows | None = None,
    ) -> None:
        self._weaver = weaver
        self._node = node
        self._sources = sources
        self._key_serde = key_serde
        self._value_serde = value_serde
        self._rekeyed = rekeyed
        self._name = name
        self._windows = windows
        self._repartition_source: str | None = None

    def windowed_by(self, windows: TimeWindows) -> TimeWindowedKStream[K, V]:
        """Group by time as well."""
        return TimeWindowedKStream(
            self._weaver,
            self._node,
            self._sources,
            key_serde=self._key_serde,
            value_serde=self._value_serde,
            rekeyed=self._rekeyed,
            name=self._name,
            windows=windows,
        )

    def count(self, *, name: str | None = None, store: str | Materialized | None = None) -> KTable[Any, int]:
        """Count the records of each key."""
        return self._aggregate("KSTREAM-AGGREGATE-", operators.counting(), Long(), name, store)

    def reduce(
        self,
        reducer: Callable[[V, V], V],
        *,
        name: str | None = None,
        store: str | Materialized | None = None,
    ) -> KTable[Any, V]:
        """The first value of each key, then ``reducer(so_far, value)``."""
        return self._aggregate("KSTREAM-REDUCE-", operators.reducing(reducer), self._value_serde, name, store)

    def aggregate(
        self,
        initializer: Callable[[], A],
        aggregator: Callable[[K, V, A], A],
        *,
        value_serde: SerdeLike | None = None,
        name: str | None = None,
        store: str | Materialized | None = None,
    ) -> KTable[Any, A]:
        """``aggregator(key, value, so_far)``, beginning with ``initializer()``; None deletes the key.

        The aggregator may change ``so_far`` in place and return it.
        """
        adder = operators.aggregating(initializer, aggregator)
        return self._aggregate("KSTREAM-AGGREGATE-", adder, value_serde, name, store)

    def _aggregate(
        self,
        prefix: str,
        adder: operators.Adder,
        value_serde: SerdeLike | None,
        name: str | None,
        store: str | Materialized | None,
    ) -> KTable[Any, Any]:
        kept = materialized(store)
        names = self._weaver.names
        store_name = kept.name or names.store(prefix)
        node_name = names.node(prefix, name)
        spec = self._spec(store_name, kept, value_serde, node_name)
        parent, sources = self._repartitioned(spec, kept, node_name)
        on_demand = StoreOnDemand(self._weaver.graph, spec)
        operator = (
            operators.aggregate(store_name, adder)
            if self._windows is None
            else operators.aggregate_windows(store_name, self._windows, adder)
        )
        node = ProcessorNode(name=node_name, parents=(parent,), operator=operator)
        self._weaver.graph.add(node)
        on_demand.node = node
        on_demand.keep()
        key_serde = spec.key_serde
        if self._windows is not None:
            key_serde = TimeWindowed(key_serde, self._windows.size_ms)
        return KTable(
            self._weaver,
            node_name,
            sources,
            key_serde=key_serde,
            value_serde=spec.value_serde,
            store=on_demand,
        )

    def _repartitioned(self, spec: StoreSpec, kept: Materialized, node: str) -> tuple[str, frozenset[str]]:
        """The node to aggregate below, after a repartition topic if the key may have changed."""
        if not self._rekeyed:
            return self._node, self._sources
        if self._repartition_source is not None:
            return self._repartition_source, frozenset({self._repartition_source})
        source = self._weaver.repartition(
            self._node,
            f"{self._name or spec.name}-repartition",
            named=self._name is not None or kept.name is not None,
            key_serde=spec.key_serde,
            value_serde=self._weaver.value_serde(node, self._value_serde),
        )
        if self._name is not None:
            self._repartition_source = source  # several aggregations share a topic the user named
        return source, frozenset({source})

    def _spec(self, name: str, kept: Materialized, value_serde: SerdeLike | None, node: str) -> StoreSpec:
        return self._weaver.store_spec(
            name,
            kept,
            key_serde=self._key_serde,
            value_serde=value_serde,
            node=node,
            **self._span(name, kept),
        )

    def _span(self, name: str, kept: Materialized) -> dict[str, Any]:
        if self._windows is None:
            if kept.retention is not None:
                raise TopologyError(f"store {name}: retention is for windowed stores")
            return {}
        needed = self._windows.size_ms + self._windows.grace_ms
        retention = needed if kept.retention is None else milliseconds(kept.retention)
        if retention < needed:
            raise TopologyError(
                f"store {name}: retention is {retention} ms, windows and grace need at least {needed} ms"
            )
        return {"kind": "window", "window_size_ms": self._windows.size_ms, "retention_ms": retention}


class TimeWindowedKStream(KGroupedStream[K, V]):
    """A stream grouped by key and window; its tables are keyed by ``Windowed(key, Window(start, end))``."""

    def windowed_by(self, windows: TimeWindows) -> TimeWindowedKStream[K, V]:
        """A stream is windowed once."""
        raise TopologyError("the stream is windowed already")
