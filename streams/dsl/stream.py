"""`KStream`: records, each for itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

from streams.dsl.grouped import KGroupedStream
from streams.dsl.options import Grouped, Joined, Materialized, Produced, materialized, settle
from streams.dsl.table import KTable, StoreOnDemand
from streams.dsl.weaver import Weaver
from streams.graph import ProcessorNode, SinkNode
from streams.processors import stateless
from streams.processors.custom import Processor, run_processor
from streams.processors.table import join_table, table_source
from streams.processors.wiring import Operator
from streams.serdes import Serde, SerdeLike, serde_for

K = TypeVar("K")
V = TypeVar("V")
NewK = TypeVar("NewK")
NewV = TypeVar("NewV")
T = TypeVar("T")


class KStream(Generic[K, V]):
    """A stream under construction; every method adds a node and returns the stream below it.

    Serdes are handed on while keys (or values) stay what they are. An operator that may change the key marks
    the stream, and the next stateful operator sends it through a repartition topic.
    """

    def __init__(
        self,
        weaver: Weaver,
        node: str,
        sources: frozenset[str],
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        rekeyed: bool = False,
    ) -> None:
        self._weaver = weaver
        self._node = node
        self._sources = sources
        self._key_serde = key_serde
        self._value_serde = value_serde
        self._rekeyed = rekeyed

    # -- record by record

    def filter(self, predicate: Callable[[K, V], bool], *, name: str | None = None) -> KStream[K, V]:
        """Keep records for which ``predicate(key, value)`` is true."""
        return self._keep_all("KSTREAM-FILTER-", name, stateless.filter_records(predicate))

    def filter_not(self, predicate: Callable[[K, V], bool], *, name: str | None = None) -> KStream[K, V]:
        """Keep records for which ``predicate(key, value)`` is false."""
        return self._keep_all("KSTREAM-FILTER-", name, stateless.filter_records(predicate, wanted=False))

    def map(
        self, mapper: Callable[[K, V], tuple[NewK, NewV]], *, name: str | None = None
    ) -> KStream[NewK, NewV]:
        """Replace key and value by ``mapper(key, value)``."""
        return self._new_key_and_value("KSTREAM-MAP-", name, stateless.map_records(mapper))

    def map_values(self, mapper: Callable[[V], NewV], *, name: str | None = None) -> KStream[K, NewV]:
        """Replace the value by ``mapper(value)``."""
        return self._new_value("KSTREAM-MAPVALUES-", name, stateless.map_values(mapper))

    def flat_map(
        self, mapper: Callable[[K, V], Iterable[tuple[NewK, NewV]]], *, name: str | None = None
    ) -> KStream[NewK, NewV]:
        """Replace a record by those of ``mapper(key, value)``."""
        return self._new_key_and_value("KSTREAM-FLATMAP-", name, stateless.flat_map(mapper))

    def flat_map_values(
        self, mapper: Callable[[V], Iterable[NewV]], *, name: str | None = None
    ) -> KStream[K, NewV]:
        """Replace a value by those of ``mapper(value)``, under the same key."""
        return self._new_value("KSTREAM-FLATMAPVALUES-", name, stateless.flat_map_values(mapper))

    def select_key(self, selector: Callable[[K, V], NewK], *, name: str | None = None) -> KStream[NewK, V]:
        """Replace the key by ``selector(key, value)``."""
        node = self._add("KSTREAM-KEY-SELECT-", name, stateless.select_key(selector))
        return KStream(self._weaver, node, self._sources, value_serde=self._value_serde, rekeyed=True)

    def peek(self, action: Callable[[K, V], object], *, name: str | None = None) -> KStream[K, V]:
        """Call ``action(key, value)`` as records pass."""
        return self._keep_all("KSTREAM-PEEK-", name, stateless.peek(action))

    def foreach(self, action: Callable[[K, V], object], *, name: str | None = None) -> None:
        """Call ``action(key, value)``; the stream ends here."""
        self._add("KSTREAM-FOREACH-", name, stateless.foreach(action))

    def merge(self, other: KStream[K, V], *, name: str | None = None) -> KStream[K, V]:
        """Both streams' records in one; nothing is said about their order."""
        node = self._weaver.names.node("KSTREAM-MERGE-", name)
        self._weaver.add_processor(node, (self._node, other._node), stateless.pass_through())
        return KStream(
            self._weaver,
            node,
            self._sources | other._sources,
            key_serde=self._key_serde,
            value_serde=self._value_serde,
            rekeyed=self._rekeyed or other._rekeyed,
        )

    def process(
        self,
        supplier: Callable[[], Processor[K, V]],
        *,
        stores: Sequence[str] = (),
        name: str | None = None,
    ) -> KStream[Any, Any]:
        """Run a processor of your own; ``supplier()`` makes one per task."""
        node = self._add("KSTREAM-PROCESSOR-", name, run_processor(supplier), tuple(stores))
        return KStream(self._weaver, node, self._sources, rekeyed=True)

    # -- out

    def to(
        self,
        topic: str,
        produced: Produced | None = None,
        *,
        key_serde: SerdeLike | None = None,
        value_serde: SerdeLike | None = None,
        name: str | None = None,
    ) -> None:
        """Write the stream to a topic; the stream ends here."""
        options = settle(produced, Produced, key_serde=key_serde, value_serde=value_serde, name=name)
        node = self._weaver.names.node("KSTREAM-SINK-", options.name)
        sink = SinkNode(
            name=node,
            parents=(self._node,),
            topic=topic,
            key_serde=self._weaver.key_serde(node, options.key_serde, self._key_serde),
            value_serde=self._weaver.value_serde(node, options.value_serde, self._value_serde),
        )
        self._weaver.graph.add(sink)

    # -- stateful

    def group_by_key(
        self,
        grouped: Grouped | None = None,
        *,
        key_serde: SerdeLike | None = None,
        value_serde: SerdeLike | None = None,
        name: str | None = None,
    ) -> KGroupedStream[K, V]:
        """Group by the key the stream has."""
        options = settle(grouped, Grouped, key_serde=key_serde, value_serde=value_serde, name=name)
        return self._grouped(options)

    def group_by(
        self,
        selector: Callable[[K, V], NewK],
        grouped: Grouped | None = None,
        *,
        key_serde: SerdeLike | None = None,
        value_serde: SerdeLike | None = None,
        name: str | None = None,
    ) -> KGroupedStream[NewK, V]:
        """Group by ``selector(key, value)``: through a repartition topic."""
        options = settle(grouped, Grouped, key_serde=key_serde, value_serde=value_serde, name=name)
        return self.select_key(selector, name=options.name)._grouped(options)

    def to_table(
        self,
        *,
        key_serde: SerdeLike | None = None,
        value_serde: SerdeLike | None = None,
        name: str | None = None,
        store: str | Materialized | None = None,
    ) -> KTable[K, V]:
        """Read the stream as a table's updates: the last value per key, a null value deletes."""
        kept = materialized(store)
        names = self._weaver.names
        node_name = names.node("KSTREAM-TOTABLE-", name)
        store_name = kept.name or names.store("KSTREAM-TOTABLE-")
        spec = self._weaver.store_spec(
            store_name,
            kept,
            key_serde=key_serde or self._key_serde,
            value_serde=value_serde or self._value_serde,
            node=node_name,
        )
        stream = self
        if self._rekeyed:
            stream = self._repartitioned(
                name or node_name, spec.key_serde, spec.value_serde, named=name is not None
            )
        on_demand = StoreOnDemand(self._weaver.graph, spec)
        operator = table_source(on_demand.name_if_kept)
        node = ProcessorNode(name=node_name, parents=(stream._node,), operator=operator)
        self._weaver.graph.add(node)
        on_demand.node = node
        if kept.name is not None:
            on_demand.keep()
        return KTable(
            self._weaver,
            node_name,
            stream._sources,
            key_serde=spec.key_serde,
            value_serde=spec.value_serde,
            store=on_demand,
        )

    def join(
        self,
        table: KTable[K, T],
        joiner: Callable[[V, T], NewV],
        joined: Joined | None = None,
        *,
        key_serde: SerdeLike | None = None,
        value_serde: SerdeLike | None = None,
        name: str | None = None,
    ) -> KStream[K, NewV]:
        """Join each record with the table's value for its key; ``joiner(value, table_value)``."""
        options = settle(joined, Joined, key_serde=key_serde, value_serde=value_serde, name=name)
        return self._join(table, joiner, options, left=False)

    def left_join(
        self,
        table: KTable[K, T],
        joiner: Callable[[V, T | None], NewV],
        joined: Joined | None = None,
        *,
        key_serde: SerdeLike | None = None,
        value_serde: SerdeLike | None = None,
        name: str | None = None,
    ) -> KStream[K, NewV]:
        """As `join`, but a record that finds nothing is joined with None."""
        options = settle(joined, Joined, key_serde=key_serde, value_serde=value_serde, name=name)
        return self._join(table, joiner, options, left=True)

    # -- how nodes are added

    def _add(self, prefix: str, name: str | None, operator: Operator, stores: tuple[str, ...] = ()) -> str:
        node = self._weaver.names.node(prefix, name)
        return self._weaver.add_processor(node, (self._node,), operator, stores)

    def _keep_all(self, prefix: str, name: str | None, operator: Operator) -> KStream[K, V]:
        return KStream(
            self._weaver,
            self._add(prefix, name, operator),
            self._sources,
            key_serde=self._key_serde,
            value_serde=self._value_serde,
            rekeyed=self._rekeyed,
        )

    def _new_value(self, prefix: str, name: str | None, operator: Operator) -> KStream[K, Any]:
        node = self._add(prefix, name, operator)
        return KStream(self._weaver, node, self._sources, key_serde=self._key_serde, rekeyed=self._rekeyed)

    def _new_key_and_value(self, prefix: str, name: str | None, operator: Operator) -> KStream[Any, Any]:
        return KStream(self._weaver, self._add(prefix, name, operator), self._sources, rekeyed=True)

    def _grouped(self, options: Grouped) -> KGroupedStream[Any, Any]:
        return KGroupedStream(
            self._weaver,
            self._node,
            self._sources,
            key_serde=serde_for(options.key_serde) or self._key_serde,
            value_serde=serde_for(options.value_serde) or self._value_serde,
            rekeyed=self._rekeyed,
            name=options.name,
        )

    def _repartitioned(
        self, name: str, key_serde: Serde[Any], value_serde: Serde[Any], *, named: bool
    ) -> KStream[K, V]:
        topic = f"{name}-repartition"
        serdes: dict[str, Any] = {"key_serde": key_serde, "value_serde": value_serde}
        source = self._weaver.repartition(self._node, topic, named=named, **serdes)
        return KStream(self._weaver, source, frozenset({source}), **serdes)

    def _join(
        self, table: KTable[K, T], joiner: Callable[[V, Any], NewV], options: Joined, *, left: bool
    ) -> KStream[K, NewV]:
        stream = self
        if self._rekeyed:
            stream = self._repartitioned(
                options.name or self._node,
                self._weaver.key_serde(self._node, options.key_serde, self._key_serde, table._key_serde),
                self._weaver.value_serde(self._node, options.value_serde, self._value_serde),
                named=options.name is not None,
            )
        store = table._store.keep()
        node = stream._add(
            "KSTREAM-LEFTJOIN-" if left else "KSTREAM-JOIN-",
            options.name,
            join_table(table._view, joiner, left=left),
            (store,),
        )
        sources = stream._sources | table._sources
        self._weaver.graph.copartitions.append(sources)
        key_serde = serde_for(options.key_serde) or stream._key_serde or table._key_serde
        return KStream(self._weaver, node, sources, key_serde=key_serde)
