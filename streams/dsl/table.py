"""`KTable`: the last value per key, as it changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from streams.dsl.weaver import Weaver
from streams.graph import Graph, ProcessorNode
from streams.processors import stateless
from streams.processors.table import TableView, filter_table, map_table_values
from streams.processors.wiring import Operator
from streams.serdes import Serde
from streams.state import StoreSpec

if TYPE_CHECKING:
    from streams.dsl.stream import KStream

K = TypeVar("K")
V = TypeVar("V")
NewK = TypeVar("NewK")
NewV = TypeVar("NewV")


class StoreOnDemand:
    """A table's store, made only if somebody reads it: a table that just flows through needs none."""

    def __init__(self, graph: Graph, spec: StoreSpec) -> None:
        self.spec = spec
        self.node: ProcessorNode | None = None
        self._graph = graph
        self._kept = False

    def name_if_kept(self) -> str | None:
        """The store's name, None if nobody asked for it; final once the topology is built."""
        return self.spec.name if self._kept else None

    def keep(self) -> str:
        """Ask for the store; returns its name."""
        if not self._kept:
            assert self.node is not None, "the table's node comes before its readers"
            self._graph.add_store(self.spec)
            self.node.stores.append(self.spec.name)
            self._kept = True
        return self.spec.name


class KTable(Generic[K, V]):
    """A table under construction. Derived tables (filter, map_values) have no store of their own."""

    def __init__(
        self,
        weaver: Weaver,
        node: str,
        sources: frozenset[str],
        *,
        key_serde: Serde[Any] | None,
        value_serde: Serde[Any] | None,
        store: StoreOnDemand,
        steps: tuple[Callable[[Any, Any], Any], ...] = (),
    ) -> None:
        self._weaver = weaver
        self._node = node
        self._sources = sources
        self._key_serde = key_serde
        self._value_serde = value_serde
        self._store = store
        self._steps = steps

    @property
    def queryable_store_name(self) -> str | None:
        """The store this very table can be read from, None for derived tables and those nobody keeps."""
        return None if self._steps else self._store.name_if_kept()

    def filter(self, predicate: Callable[[K, V], bool], *, name: str | None = None) -> KTable[K, V]:
        """Keep keys whose value passes; one that no longer does is deleted."""
        step = _step_filter(predicate)
        return self._derived("KTABLE-FILTER-", name, filter_table(predicate), step, self._value_serde)

    def filter_not(self, predicate: Callable[[K, V], bool], *, name: str | None = None) -> KTable[K, V]:
        """Keep keys whose value does not pass."""

        def inverse(key: K, value: V) -> bool:
            return not predicate(key, value)

        return self._derived(
            "KTABLE-FILTER-", name, filter_table(inverse), _step_filter(inverse), self._value_serde
        )

    def map_values(self, mapper: Callable[[V], NewV], *, name: str | None = None) -> KTable[K, NewV]:
        """Replace each value by ``mapper(value)``."""
        operator = map_table_values(mapper)
        return self._derived("KTABLE-MAPVALUES-", name, operator, lambda key, value: mapper(value), None)

    def to_stream(
        self, key: Callable[[K, V], NewK] | None = None, *, name: str | None = None
    ) -> KStream[Any, V]:
        """The table's updates as records; ``key(key, value)`` gives them another key."""
        from streams.dsl.stream import KStream

        node = self._weaver.names.node("KTABLE-TOSTREAM-", name)
        self._weaver.add_processor(node, (self._node,), stateless.pass_through())
        stream: KStream[Any, V] = KStream(
            self._weaver, node, self._sources, key_serde=self._key_serde, value_serde=self._value_serde
        )
        return stream if key is None else stream.select_key(key)

    @property
    def _view(self) -> Callable[[], TableView]:
        return lambda: TableView(self._store.spec.name, self._steps)

    def _derived(
        self,
        prefix: str,
        name: str | None,
        operator: Operator,
        step: Callable[[Any, Any], Any],
        value_serde: Serde[Any] | None,
    ) -> KTable[K, Any]:
        node = self._weaver.names.node(prefix, name)
        self._weaver.add_processor(node, (self._node,), operator)
        return KTable(
            self._weaver,
            node,
            self._sources,
            key_serde=self._key_serde,
            value_serde=value_serde,
            store=self._store,
            steps=(*self._steps, step),
        )


def _step_filter(predicate: Callable[[Any, Any], bool]) -> Callable[[Any, Any], Any]:
    return lambda key, value: value if predicate(key, value) else None
