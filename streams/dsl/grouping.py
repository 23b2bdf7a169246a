"""`Grouping`: a stream grouped by key, perhaps by window too, and the tables that aggregations make of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from streams.dsl.kept import Kept, put_in_store
from streams.dsl.options import Grouped, Materialized
from streams.dsl.strand import Strand
from streams.errors import TopologyError
from streams.processors import aggregate as operators
from streams.processors.windows import TimeWindows, milliseconds
from streams.serdes import SerdeLike, TimeWindowed, serde_for
from streams.state import StoreSpec


class Grouping:
    """What all aggregations of one grouping share; its name goes to their repartition topic."""

    def __init__(self, strand: Strand, name: str | None, windows: TimeWindows | None = None) -> None:
        self.strand = strand
        self._name = name
        self._windows = windows
        self._behind_topic: Strand | None = None

    @classmethod
    def of(cls, strand: Strand, options: Grouped) -> Grouping:
        """A stream grouped as the options say."""
        key_serde = serde_for(options.key_serde) or strand.key_serde
        value_serde = serde_for(options.value_serde) or strand.value_serde
        return cls(replace(strand, key_serde=key_serde, value_serde=value_serde), options.name)

    def windowed_by(self, windows: TimeWindows) -> Grouping:
        """The same, by window as well; once."""
        if self._windows is not None:
            raise TopologyError("the stream is windowed already")
        return Grouping(self.strand, self._name, windows)

    def aggregated(
        self,
        prefix: str,
        adder: operators.Adder,
        value_serde: SerdeLike | None,
        name: str | None,
        kept: Materialized,
    ) -> Kept:
        """The table of ``adder``'s results."""
        weaver = self.strand.weaver
        store_name = kept.name or weaver.names.store(prefix)
        node = weaver.names.node(prefix, name)
        spec = weaver.store_spec(
            store_name,
            kept,
            key_serde=self.strand.key_serde,
            value_serde=value_serde,
            node=node,
            **self._span(store_name, kept),
        )
        operator = (
            operators.aggregate(store_name, adder)
            if self._windows is None
            else operators.aggregate_windows(store_name, self._windows, adder)
        )
        table = put_in_store(self._repartitioned(spec, kept, node), node, spec, lambda store: operator)
        table.store.keep()
        if self._windows is None:
            return table
        key_serde = TimeWindowed(spec.key_serde, self._windows.size_ms)
        return replace(table, strand=replace(table.strand, key_serde=key_serde))

    def _repartitioned(self, spec: StoreSpec, kept: Materialized, node: str) -> Strand:
        """The strand to aggregate, behind a repartition topic if the key may have changed."""
        if self._behind_topic is not None:
            return self._behind_topic
        if not self.strand.rekeyed:
            return self.strand
        strand = self.strand.repartitioned(
            self._name or spec.name,
            spec.key_serde,
            self.strand.weaver.value_serde(node, self.strand.value_serde),
            named=self._name is not None or kept.name is not None,
        )
        if self._name is not None:
            self._behind_topic = strand  # several aggregations share a topic the user named
        return strand

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
