"""`Stream`: the records that leave one node of the graph, and the nodes that can be added below it.

A `KStream` (`nouns`) holds one; it is the signatures, this adds the nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from streams.dsl.internal_builder import InternalStreamsBuilder
from streams.dsl.options import Produced
from streams.graph import SinkNode
from streams.processors import stateless
from streams.processors.wiring import Operator
from streams.serdes import Serde


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

    def end_in(self, topic: str, options: Produced) -> None:
        """Write to a topic."""
        node = self.builder.names.node("KSTREAM-SINK-", options.name)
        sink = SinkNode(
            name=node,
            parents=(self.node,),
            topic=topic,
            key_serde=self.builder.key_serde(node, options.key_serde, self.key_serde),
            value_serde=self.builder.value_serde(node, options.value_serde, self.value_serde),
        )
        self.builder.graph.add(sink)
