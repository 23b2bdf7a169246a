"""`StreamsBuilder`: where a topology begins, and the plumbing streams and tables share."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, Unpack, overload

from streams.config import StreamsConfig
from streams.dsl.global_table import GlobalTable
from streams.dsl.internal_builder import InternalStreamsBuilder
from streams.dsl.keywords import StreamSourceOptions, TableSourceOptions, takes
from streams.dsl.nouns.global_ktable import GlobalKTable
from streams.dsl.nouns.kstream import KStream
from streams.dsl.nouns.ktable import KTable
from streams.dsl.options import Consumed, as_materialized, options_with
from streams.dsl.sources import stream_source, table_source
from streams.dsl.table import table_of_updates
from streams.errors import TopologyError
from streams.graph import Graph, SourceNode, TimestampExtractor, optimized
from streams.optimization import NO_OPTIMIZATION, optimization_rules
from streams.processors.custom import Processor
from streams.serdes import SerdeLike, SerdeOf, serde_for
from streams.state import StoreSpec
from streams.topology import Topology, add_global_store

if TYPE_CHECKING:
    # What is not said is Any (PEP 696), which only type checkers have before Python 3.13.
    from typing_extensions import TypeVar

    DefaultK = TypeVar("DefaultK", default=Any)
    DefaultV = TypeVar("DefaultV", default=Any)
else:
    from typing import TypeVar

    DefaultK, DefaultV = TypeVar("DefaultK"), TypeVar("DefaultV")
K = TypeVar("K")
V = TypeVar("V")


class StreamsBuilder(Generic[DefaultK, DefaultV]):
    """Collects a program's streams and tables; `build` makes the topology of them.

    ``key_serde`` and ``value_serde`` are used wherever an operator needs one and none is known. To a type
    checker, too, streams and tables have the types that are given here or there; Any where none is.
    ``config``: the application's settings, which are built with, and whose ``default.key.serde`` and
    ``default.value.serde`` count where these are not given. As Kafka's ``StreamsBuilder(TopologyConfig)``.
    """

    def __init__(
        self,
        config: StreamsConfig | None = None,
        *,
        key_serde: SerdeOf[DefaultK] | None = None,
        value_serde: SerdeOf[DefaultV] | None = None,
    ) -> None:
        self._config = config
        if config is not None:
            key_serde = config.default_key_serde if key_serde is None else key_serde
            value_serde = config.default_value_serde if value_serde is None else value_serde
        self._internal = InternalStreamsBuilder(Graph(), serde_for(key_serde), serde_for(value_serde))

    @overload
    def stream(
        self,
        topics: str | Sequence[str] | re.Pattern[str],
        consumed: Consumed | None = None,
        *,
        key_serde: None = None,
        value_serde: None = None,
        **options: Unpack[StreamSourceOptions],
    ) -> KStream[DefaultK, DefaultV]: ...
    @overload
    def stream(
        self,
        topics: str | Sequence[str] | re.Pattern[str],
        consumed: Consumed | None = None,
        *,
        key_serde: None = None,
        value_serde: SerdeOf[V],
        **options: Unpack[StreamSourceOptions],
    ) -> KStream[DefaultK, V]: ...
    @overload
    def stream(
        self,
        topics: str | Sequence[str] | re.Pattern[str],
        consumed: Consumed | None = None,
        *,
        key_serde: SerdeOf[K],
        value_serde: None = None,
        **options: Unpack[StreamSourceOptions],
    ) -> KStream[K, DefaultV]: ...
    @overload
    def stream(
        self,
        topics: str | Sequence[str] | re.Pattern[str],
        consumed: Consumed | None = None,
        *,
        key_serde: SerdeOf[K],
        value_serde: SerdeOf[V],
        **options: Unpack[StreamSourceOptions],
    ) -> KStream[K, V]: ...
    @takes(StreamSourceOptions)
    def stream(
        self,
        topics: str | Sequence[str] | re.Pattern[str],
        consumed: Consumed | None = None,
        *,
        key_serde: SerdeLike | None = None,
        value_serde: SerdeLike | None = None,
        **options: Unpack[StreamSourceOptions],
    ) -> KStream[Any, Any]:
        """Read topics as a stream: one, several, or all whose whole names match a compiled pattern.

        Topics that match and are made later are read once they are seen, every ``metadata.max.age.ms``. The
        same topics, or the same pattern, may be read again: the first call's serdes, timestamp extractor and
        name count, as in Kafka, and ``reset`` must be the same. Raises TopologyError where it is not, and for
        topics that overlap with those of another source.
        """
        source_options = options_with(
            consumed,
            Consumed,
            key_serde=key_serde,
            value_serde=value_serde,
            timestamp_extractor=options["timestamp_extractor"],
            reset=options["reset"],
            name=options["name"],
        )
        return KStream(stream_source(self._internal, topics, source_options))

    @overload
    def table(
        self,
        topic: str,
        consumed: Consumed | None = None,
        *,
        key_serde: None = None,
        value_serde: None = None,
        **options: Unpack[TableSourceOptions],
    ) -> KTable[DefaultK, DefaultV]: ...
    @overload
    def table(
        self,
        topic: str,
        consumed: Consumed | None = None,
        *,
        key_serde: None = None,
        value_serde: SerdeOf[V],
        **options: Unpack[TableSourceOptions],
    ) -> KTable[DefaultK, V]: ...
    @overload
    def table(
        self,
        topic: str,
        consumed: Consumed | None = None,
        *,
        key_serde: SerdeOf[K],
        value_serde: None = None,
        **options: Unpack[TableSourceOptions],
    ) -> KTable[K, DefaultV]: ...
    @overload
    def table(
        self,
        topic: str,
        consumed: Consumed | None = None,
        *,
        key_serde: SerdeOf[K],
        value_serde: SerdeOf[V],
        **options: Unpack[TableSourceOptions],
    ) -> KTable[K, V]: ...
    @takes(TableSourceOptions)
    def table(
        self,
        topic: str,
        consumed: Consumed | None = None,
        *,
        key_serde: SerdeLike | None = None,
        value_serde: SerdeLike | None = None,
        **options: Unpack[TableSourceOptions],
    ) -> KTable[Any, Any]:
        """Read a topic as a table: the last value per key; a null value deletes. Null keys are dropped."""
        source_options = options_with(
            consumed,
            Consumed,
            key_serde=key_serde,
            value_serde=value_serde,
            timestamp_extractor=options["timestamp_extractor"],
            name=options["name"],
        )
        materialized = as_materialized(options["store"])
        store_name = materialized.name or f"{topic}-{self._internal.names.store('')}"
        source = table_source(self._internal, topic, source_options)
        spec = self._internal.store_spec(
            store_name,
            materialized,
            key_serde=source.key_serde,
            value_serde=source.value_serde,
            node=source.node,
        )
        node = self._internal.names.node("KTABLE-SOURCE-", source_options.name)
        self._internal.graph.table_topics[store_name] = topic
        return KTable(table_of_updates(source, node, spec, materialized))

    @overload
    def global_table(
        self,
        topic: str,
        consumed: Consumed | None = None,
        *,
        key_serde: None = None,
        value_serde: None = None,
        **options: Unpack[TableSourceOptions],
    ) -> GlobalKTable[DefaultK, DefaultV]: ...
    @overload
    def global_table(
        self,
        topic: str,
        consumed: Consumed | None = None,
        *,
        key_serde: None = None,
        value_serde: SerdeOf[V],
        **options: Unpack[TableSourceOptions],
    ) -> GlobalKTable[DefaultK, V]: ...
    @overload
    def global_table(
        self,
        topic: str,
        consumed: Consumed | None = None,
        *,
        key_serde: SerdeOf[K],
        value_serde: None = None,
        **options: Unpack[TableSourceOptions],
    ) -> GlobalKTable[K, DefaultV]: ...
    @overload
    def global_table(
        self,
        topic: str,
        consumed: Consumed | None = None,
        *,
        key_serde: SerdeOf[K],
        value_serde: SerdeOf[V],
        **options: Unpack[TableSourceOptions],
    ) -> GlobalKTable[K, V]: ...
    @takes(TableSourceOptions)
    def global_table(
        self,
        topic: str,
        consumed: Consumed | None = None,
        *,
        key_serde: SerdeLike | None = None,
        value_serde: SerdeLike | None = None,
        **options: Unpack[TableSourceOptions],
    ) -> GlobalKTable[Any, Any]:
        """Read a topic as a table that every instance holds whole, whatever its partitions.

        It is read to its end before anything is processed, and then as records come, in no order of time with
        others.
        """
        source_options = options_with(
            consumed,
            Consumed,
            key_serde=key_serde,
            value_serde=value_serde,
            timestamp_extractor=options["timestamp_extractor"],
            name=options["name"],
        )
        return GlobalKTable(
            GlobalTable.of(self._internal, topic, source_options, as_materialized(options["store"]))
        )

    def add_store(self, spec: StoreSpec) -> None:
        """Add a store for processors of your own; name it in `KStream.process(stores=...)`."""
        if spec.kind in ("window", "session") and spec.retention_ms <= 0:
            raise TopologyError(f"store {spec.name}: say how long its windows are kept, in retention_ms=")
        self._internal.graph.add_store(spec)

    def add_global_store(
        self,
        spec: StoreSpec,
        topic: str,
        supplier: Callable[[], Processor[Any, Any]],
        consumed: Consumed | None = None,
        *,
        key_serde: SerdeLike | None = None,
        value_serde: SerdeLike | None = None,
        timestamp_extractor: TimestampExtractor | None = None,
        name: str | None = None,
    ) -> None:
        """Add a store that every instance keeps whole: a processor makes it of all of the topic's records.

        ``supplier()`` makes the processor, one per instance, which is given every record again when the store
        is restored. It forwards nothing. Any processor may read the store, without naming it in ``stores=``.
        """
        options = options_with(
            consumed,
            Consumed,
            key_serde=key_serde,
            value_serde=value_serde,
            timestamp_extractor=timestamp_extractor,
            name=name,
        )
        names = self._internal.names
        source = SourceNode(
            name=names.node("KSTREAM-SOURCE-", options.name, "-source"),
            topics=(topic,),
            key_serde=self._internal.key_serde(topic, options.key_serde, spec.key_serde),
            value_serde=self._internal.value_serde(topic, options.value_serde),
            timestamp_extractor=options.timestamp_extractor,
            is_global=True,
            by_processor=True,
        )
        node = names.node("KTABLE-SOURCE-", options.name)
        add_global_store(self._internal.graph, spec, source, node, supplier)

    def build(
        self,
        config: StreamsConfig | None = None,
        *,
        topology_optimization: str | None = None,
        ensure_explicit_internal_resource_naming: bool | None = None,
    ) -> Topology:
        """Return the finished topology. Raises TopologyError if it cannot work.

        ``topology_optimization``: ``none``, ``all`` or rules divided by commas, as Kafka's setting of that
        name. ``ensure_explicit_internal_resource_naming``: refuse stores and internal topics that were given
        no name (KIP-1111). Both are taken from ``config``, the builder's own unless given, if they are not
        given here. It also says what ``default.timestamp.extractor`` and ``default.dsl.store`` are.
        """
        config = self._config if config is None else config
        setting = topology_optimization or (
            NO_OPTIMIZATION if config is None else config.topology_optimization
        )
        rules = optimization_rules(setting)
        topology = Topology(
            optimized(self._internal.graph, rules),
            optimization=rules,
            has_default_serdes=self._config is not None,
        )
        topology = (
            topology.finished() if config is None else topology.with_defaults(**config.topology_defaults)
        )
        strict = ensure_explicit_internal_resource_naming
        if config is not None and strict is None:
            strict = config.ensure_explicit_internal_resource_naming
        if strict:
            topology.generated_names.refuse()
        return topology
