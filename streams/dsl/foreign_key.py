"""The join of two tables by a foreign key: its nodes, topics and store, under Kafka's names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from streams.dsl.arity import takes_key
from streams.dsl.internal_builder import InternalStreamsBuilder
from streams.dsl.options import Materialized
from streams.dsl.stream import Stream
from streams.dsl.table import Table, table_of_updates
from streams.errors import TopologyError
from streams.graph import Names, SinkNode, SourceNode, StreamPartitioner, checked
from streams.processors.joins import foreign_key as operators
from streams.processors.joins.joiner import Joiner, with_key
from streams.processors.tables.versioned import latest_only
from streams.serdes import Bytes, Serde, serde_for
from streams.serdes.foreign_key import ResponseSerde, SubscriptionSerde
from streams.state import StoreSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class _Names:
    """Names of a join's topics, nodes and stores."""

    registration_topic: str
    send: str
    registration_sink: str
    registration_source: str
    store: str
    receive: str
    answer: str
    answer_changed: str
    response_topic: str
    response_sink: str
    response_source: str
    resolve: str
    result: str

    @classmethod
    def of(cls, names: Names, name: str | None) -> _Names:
        """Return the names of a join, numbered in the order in which Kafka Streams numbers them."""
        prefix, node = "KTABLE-FK-JOIN-SUBSCRIPTION-", names.node
        registration, processor = f"{prefix}REGISTRATION-", f"{prefix}PROCESSOR-"
        response, resolver = f"{prefix}RESPONSE-", f"{prefix}RESPONSE-RESOLVER-PROCESSOR-"
        return cls(
            registration_topic=node(registration, name, "-subscription-registration") + "-topic",
            send=node(registration, name, "-subscription-registration-processor"),
            registration_sink=node("KTABLE-SINK-", name, "-subscription-registration-sink"),
            registration_source=node("KTABLE-SOURCE-", name, "-subscription-registration-source"),
            store=node(f"{prefix}STATE-STORE-", name, "-subscription-store"),
            receive=node(processor, name, "-subscription-receive"),
            answer=node(processor, name, "-subscription-join-foreign"),
            answer_changed=node(processor, name, "-foreign-join-subscription"),
            response_topic=node(response, name, "-subscription-response") + "-topic",
            response_sink=node("KTABLE-SINK-", name, "-subscription-response-sink"),
            response_source=node("KTABLE-SOURCE-", name, "-subscription-response-source"),
            resolve=node(resolver, name, "-subscription-response-resolver"),
            result=node("KTABLE-FK-JOIN-OUTPUT-", name, "-result"),
        )


class _Unknown(Serde[Any]):
    """Stands where nobody said how the joined values become bytes; used only if the join has a store."""

    def __init__(self, node: str) -> None:
        self._node = node

    def serialize(self, value: Any) -> bytes:
        raise TopologyError(
            f"the table of {self._node} needs a value serde and none is known: say "
            "store=Materialized(value_serde=...) where it is joined"
        )

    def deserialize(self, data: bytes) -> Any:
        return self.serialize(data)


def join_foreign(
    left: Table,
    foreign: Table,
    extractor: Callable[..., Any],
    joiner: Callable[..., Any],
    name: str | None,
    materialized: Materialized,
    *,
    keep_left: bool,
) -> Table:
    """Add a join's nodes; ``keep_left``: rows are there without the foreign one's, too."""
    builder = left.stream.builder
    if builder is not foreign.stream.builder:
        raise TopologyError("tables that are joined come of one StreamsBuilder")
    foreign.old_values.ask(force=True)
    left.old_values.ask(force=True)
    names = _Names.of(builder.names, name)
    join = _ForeignKeyJoin(
        builder=builder,
        names=names,
        left=left,
        foreign=foreign,
        keep_left=keep_left,
        key_serde=builder.key_serde(names.send, left.stream.key_serde),
        value_serde=builder.value_serde(names.send, left.stream.value_serde),
        foreign_serde=builder.key_serde(names.answer, foreign.stream.key_serde),
        foreign_value_serde=builder.value_serde(names.answer, foreign.stream.value_serde),
    )
    extract = extractor if takes_key(extractor, "foreign_key") else lambda key, value: extractor(value)
    join.add_subscriptions(extract)
    join.add_answers()
    return _result(join.resolved(with_key(joiner, takes_key=False)), names.result, materialized)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ForeignKeyJoin:
    """A foreign-key join, which is put into the graph in three steps, in this order."""

    builder: InternalStreamsBuilder
    names: _Names
    left: Table
    foreign: Table
    keep_left: bool
    key_serde: Serde[Any]
    value_serde: Serde[Any]
    foreign_serde: Serde[Any]
    foreign_value_serde: Serde[Any]

    def add_subscriptions(self, extract: Callable[[Any, Any], Any]) -> None:
        """Add the nodes from the left table's updates to the subscriptions that the right side stores."""
        builder, names, subscriptions = self.builder, self.names, SubscriptionSerde(self.key_serde)
        serialize = self.foreign_serde.serialize
        send = operators.send_subscriptions(extract, serialize, self.value_serde, left=self.keep_left)
        if self.left.is_versioned:
            send = latest_only(send)
        builder.add_processor(names.send, (self.left.stream.node,), send)
        self._through_topic(
            (names.send,),
            names.registration_topic,
            names.registration_sink,
            names.registration_source,
            key_serde=self.foreign_serde,
            value_serde=subscriptions,
        )
        builder.graph.copartitions.append(self.foreign.stream.sources | {names.registration_source})
        subscription_store = StoreSpec(
            name=names.store, kind="key_value", key_serde=Bytes(), value_serde=subscriptions, cached=False
        )
        builder.graph.add_store(subscription_store)
        receive = operators.receive_subscriptions(names.store, serialize, self.key_serde.serialize)
        builder.add_processor(names.receive, (names.registration_source,), receive, (names.store,))

    def add_answers(self) -> None:
        """Add the nodes that answer subscriptions, and answer the stored ones when a foreign row changes."""
        builder, names, view = self.builder, self.names, self.foreign.read()
        builder.add_processor(names.answer, (names.receive,), operators.answer(view), view.stores)
        changed = operators.answer_changed(names.store, self.foreign_serde.serialize)
        if self.foreign.is_versioned:
            changed = latest_only(changed)
        builder.add_processor(names.answer_changed, (self.foreign.stream.node,), changed, (names.store,))
        self._through_topic(
            (names.answer, names.answer_changed),
            names.response_topic,
            names.response_sink,
            names.response_source,
            key_serde=self.key_serde,
            value_serde=ResponseSerde(self.foreign_value_serde),
            partitioner=operators.placed_by_response,
        )

    def resolved(self, joiner: Joiner) -> Stream:
        """Return the stream of responses, each joined with its row of the left table."""
        names, view = self.names, self.left.read()
        sources = self.left.stream.sources | {names.response_source}
        self.builder.graph.copartitions.append(sources)
        operator = operators.resolve(view, self.value_serde, joiner, left=self.keep_left)
        self.builder.add_processor(names.resolve, (names.response_source,), operator, view.stores)
        return Stream(builder=self.builder, node=names.resolve, sources=sources, key_serde=self.key_serde)

    def _through_topic(
        self,
        parents: tuple[str, ...],
        topic: str,
        sink: str,
        source: str,
        *,
        partitioner: StreamPartitioner | None = None,
        **serdes: Serde[Any],
    ) -> None:
        graph = self.builder.graph
        graph.add(
            SinkNode(
                name=sink,
                parents=parents,
                topic=checked(topic),
                internal=True,
                partitioner=partitioner,
                **serdes,  # type: ignore[arg-type]
            )
        )
        # From its start, whatever auto.offset.reset says: only this application writes the topic.
        graph.add(
            SourceNode(
                name=source,
                topics=(topic,),
                internal=True,
                reset="earliest",
                **serdes,  # type: ignore[arg-type]
            )
        )


def _result(stream: Stream, node: str, materialized: Materialized) -> Table:
    """Return the table of the joined rows. Its serde may be unknown until its store is read."""
    builder = stream.builder
    value_serde = serde_for(materialized.value_serde) or builder.default_value_serde
    spec = builder.store_spec(
        materialized.name or builder.names.store("KTABLE-FK-JOIN-OUTPUT-"),
        materialized,
        key_serde=stream.key_serde,
        value_serde=value_serde or _Unknown(node),
        node=node,
    )
    table = table_of_updates(stream, node, spec, materialized)
    return (
        table if value_serde is not None else replace(table, stream=replace(table.stream, value_serde=None))
    )
