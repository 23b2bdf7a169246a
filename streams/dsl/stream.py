"""`Stream`: the records that leave one node of the graph, and the nodes that can be added below it.

A `KStream` (`nouns`) holds one; it is the signatures, this adds the nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from streams.dsl.internal_builder import InternalStreamsBuilder
from streams.dsl.options import Printed, Produced, Repartitioned
from streams.graph import SinkNode, TopicChooser
from streams.processors import stateless
from streams.processors.printer import Printer
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

    def then(self, prefix: str, name: str | None, operator: Operator, stores: tuple[str, ...] = ()) -> Stream:
        """Add a node below this one that changes neither keys nor values; the stream that leaves it."""
        node = self.builder.names.node(prefix, name)
        return replace(self, node=self.builder.add_processor(node, (self.node,), operator, stores))

    def processed(
        self, prefix: str, name: str | None, operator: Operator, stores: Sequence[str | StoreSpec]
    ) -> Stream:
        """Add a node that runs a user's processor; as in Kafka, a name that is given costs no number."""
        node = self.builder.names.node(prefix) if name is None else name
        names = tuple(self.builder.graph.connect(stores))
        return replace(self, node=self.builder.add_processor(node, (self.node,), operator, names))

    def with_new_keys(self) -> Stream:
        """The same stream, marked as having other keys than its sources."""
        return replace(self, key_serde=None, rekeyed=True)

    def with_new_values(self) -> Stream:
        """The same stream, whose values have another type."""
        return replace(self, value_serde=None)

    def merged(self, other: Stream, name: str | None) -> Stream:
        """Add a node that passes on the records of both."""
        node = self.builder.names.node("KSTREAM-MERGE-", name)
        self.builder.add_processor(node, (self.node, other.node), stateless.pass_through())
        sources, rekeyed = self.sources | other.sources, self.rekeyed or other.rekeyed
        return replace(self, node=node, sources=sources, rekeyed=rekeyed)

    def selected(self, selector: Callable[[Any, Any], Any], name: str | None) -> Stream:
        """Add a node that replaces keys by ``selector(key, value)``."""
        return self.then("KSTREAM-KEY-SELECT-", name, stateless.select_key(selector)).with_new_keys()

    def repartitioned(
        self,
        name: str,
        key_serde: Serde[Any],
        value_serde: Serde[Any],
        *,
        named: bool,
        keep_null_keys: bool = False,
    ) -> Stream:
        """The stream, read back from a topic ``<name>-repartition`` if keys may have changed."""
        if not self.rekeyed:
            return self
        serdes: dict[str, Any] = {"key_serde": key_serde, "value_serde": value_serde}
        source = self.builder.repartition(
            self.node, f"{name}-repartition", named=named, keep_null_keys=keep_null_keys, **serdes
        )
        return Stream(builder=self.builder, node=source, sources=frozenset({source}), **serdes)

    def sent_through(self, options: Repartitioned) -> Stream:
        """The stream, read back from a topic of its own, whether its keys have changed or not (KIP-221)."""
        name = options.name or self.builder.names.node("KSTREAM-REPARTITION-")
        key_serde = self.builder.key_serde(name, options.key_serde, self.key_serde)
        value_serde = self.builder.value_serde(name, options.value_serde, self.value_serde)
        source = self.builder.repartition(
            self.node,
            name if name.endswith("-repartition") else f"{name}-repartition",
            named=options.name is not None,
            keep_null_keys=True,
            key_serde=key_serde,
            value_serde=value_serde,
            partitions=options.partitions,
            partitioner=options.partitioner,
        )
        return Stream(
            builder=self.builder,
            node=source,
            sources=frozenset({source}),
            key_serde=key_serde,
            value_serde=value_serde,
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
