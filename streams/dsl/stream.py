"""`Stream`: the records that leave one node of the graph, and the nodes that can be added below it.

A `KStream` (`nouns.kstream`) holds one; it is the signatures, this adds the nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from streams.dsl.internal_builder import InternalStreamsBuilder
from streams.dsl.options import Printed, Produced, Repartitioned
from streams.graph import (
    ProcessorNode,
    RepartitionNames,
    SinkNode,
    StreamPartitioner,
    TopicChooser,
    checked,
)
from streams.processors.stateless import stateless
from streams.processors.stateless.printer import Printer
from streams.processors.wiring import Operator
from streams.serdes import Serde
from streams.state import StoreSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """The records that leave ``node``: ``sources`` are the source nodes above it.

    Serdes are None where none is known. ``rekeyed``: the key may have changed, so the next stateful node
    needs a repartition topic before it.
    """

    builder: InternalStreamsBuilder
    node: str
    sources: frozenset[str]
    key_serde: Serde[Any] | None = None
    value_serde: Serde[Any] | None = None
    rekeyed: bool = False
    _behind_topic: list[Stream] = field(default_factory=list, init=False, repr=False)
    """The streams read back for joins of this very stream; streams derived from it begin with none."""

    def then(
        self,
        prefix: str,
        name: str | None,
        operator: Operator,
        stores: tuple[str, ...] = (),
        *,
        takes_null_keys: bool = False,
    ) -> Stream:
        """Add a node below this one that changes neither keys nor values; the stream that leaves it."""
        return self.then_named(
            self.builder.names.node(prefix, name), operator, stores, takes_null_keys=takes_null_keys
        )

    def then_named(
        self, node: str, operator: Operator, stores: tuple[str, ...] = (), *, takes_null_keys: bool = False
    ) -> Stream:
        """Add a node of this name below the stream, and return the stream that leaves the node."""
        self.builder.add_processor(node, (self.node,), operator, stores, takes_null_keys=takes_null_keys)
        return replace(self, node=node)

    def processed(
        self, prefix: str, operator: Operator, *, stores: Sequence[str | StoreSpec], name: str | None
    ) -> Stream:
        """Add a node that runs a user's processor; as in Kafka, a name that is given costs no number."""
        node = self.builder.names.node(prefix) if name is None else checked(name)
        return self.then_named(node, operator, tuple(self.builder.graph.connect(stores)))._that_changes(
            "values"
        )

    def with_new_keys(self) -> Stream:
        """Return the same stream, marked as having other keys than its sources."""
        return replace(self._that_changes("keys"), key_serde=None, rekeyed=True)

    def with_new_values(self) -> Stream:
        """Return the same stream, whose values have another type."""
        return replace(self._that_changes("values"), value_serde=None)

    def _that_changes(self, what: Literal["keys", "values"]) -> Stream:
        """Have the node say so; what it has said first stays."""
        node = self.builder.graph.nodes[self.node]
        if isinstance(node, ProcessorNode) and node.changes == "nothing":
            node.changes = what
        return self

    def merged(self, other: Stream, name: str | None) -> Stream:
        """Add a node that passes on the records of both."""
        node = self.builder.names.node("KSTREAM-MERGE-", name)
        parents = tuple(dict.fromkeys((self.node, other.node)))  # merged with itself it is read once
        self.builder.graph.add(
            ProcessorNode(name=node, parents=parents, operator=stateless.pass_through(), is_merge=True)
        )
        sources, rekeyed = self.sources | other.sources, self.rekeyed or other.rekeyed
        return replace(self, node=node, sources=sources, rekeyed=rekeyed)

    def selected(self, selector: Callable[[Any, Any], Any], name: str | None) -> Stream:
        """Add a node that replaces keys by ``selector(key, value)``."""
        return self.then("KSTREAM-KEY-SELECT-", name, stateless.select_key(selector)).with_new_keys()

    def repartitioned(self, name: str, key_serde: Serde[Any], value_serde: Serde[Any]) -> Stream:
        """Return the stream, read back from the topic ``<name>-repartition`` if keys may have changed."""
        if not self.rekeyed:
            return self
        return self.read_back(self.builder.names.repartition(name), key_serde, value_serde)

    def repartitioned_for_join(
        self, name: str | None, key_serde: Serde[Any], value_serde: Serde[Any]
    ) -> Stream:
        """Return `repartitioned` for a join; without a name it shares the topic of the stream's last join."""
        if not self.rekeyed:
            return self
        names = self.builder.names.repartition(name or self.node)
        if name is None and self._behind_topic:
            return self._behind_topic[-1]
        self._behind_topic.append(self.read_back(names, key_serde, value_serde))
        return self._behind_topic[-1]

    def read_back(
        self,
        names: RepartitionNames,
        key_serde: Serde[Any],
        value_serde: Serde[Any],
        *,
        partitions: int | None = None,
        partitioner: StreamPartitioner | None = None,
        asked_for: bool = False,
    ) -> Stream:
        """Return the stream, read back from a topic of these names."""
        serdes: dict[str, Any] = {"key_serde": key_serde, "value_serde": value_serde}
        source = self.builder.repartition(
            self.node,
            names,
            partitions=partitions,
            partitioner=partitioner,
            asked_for=asked_for,
            **serdes,
        )
        return Stream(builder=self.builder, node=source, sources=frozenset({source}), **serdes)

    def sent_through(self, options: Repartitioned) -> Stream:
        """Return the stream, read back from a topic of its own even if its keys are the same (KIP-221)."""
        names = self.builder.names
        name = names.node("KSTREAM-REPARTITION-") if options.name is None else options.name
        return self.read_back(
            names.repartition(name),
            self.builder.key_serde(name, options.key_serde, self.key_serde),
            self.builder.value_serde(name, options.value_serde, self.value_serde),
            partitions=options.partitions,
            partitioner=options.partitioner,
            asked_for=True,
        )

    def end_in(self, topic: str | TopicChooser, options: Produced) -> None:
        """Write to a topic, or to the one that is chosen for each record."""
        node = self.builder.names.node("KSTREAM-SINK-", options.name)
        sink = SinkNode(
            name=node,
            parents=(self.node,),
            topic=topic if isinstance(topic, str) else None,
            choose_topic=None if isinstance(topic, str) else topic,
            partitioner=options.partitioner,
            key_serde=self.builder.key_serde(node, options.key_serde, self.key_serde),
            value_serde=self.builder.value_serde(node, options.value_serde, self.value_serde),
        )
        self.builder.graph.add(sink)

    def printed(self, options: Printed) -> None:
        """Print each record."""
        label = self.node if options.label is None else options.label
        text = options.mapper or _key_and_value

        def line(key: Any, value: Any) -> str:
            return f"[{label}]: {text(key, value)}"

        printer = Printer(None if options.path is None else Path(options.path))
        self.then("KSTREAM-PRINTER-", options.name, stateless.print_records(line, printer))


def _key_and_value(key: Any, value: Any) -> str:
    return f"{key}, {value}"
