"""`Strand`: one place in the graph from which a stream goes on, and the nodes that can follow there.

The nouns of the language (`nouns`) hold one each; they say what may follow, here it is woven in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from streams.dsl.options import Produced
from streams.dsl.weaver import Weaver
from streams.graph import SinkNode
from streams.processors import stateless
from streams.processors.wiring import Operator
from streams.serdes import Serde


@dataclass(frozen=True, slots=True, kw_only=True)
class Strand:
    """A node, the source nodes above it, and what is known of the records that leave it.

    ``rekeyed``: their key may have changed, so the next stateful node needs a repartition topic before it.
    """

    weaver: Weaver
    node: str
    sources: frozenset[str]
    key_serde: Serde[Any] | None = None
    value_serde: Serde[Any] | None = None
    rekeyed: bool = False

    def then(self, prefix: str, name: str | None, operator: Operator, stores: tuple[str, ...] = ()) -> Strand:
        """A node below this one that leaves keys and values what they are."""
        node = self.weaver.names.node(prefix, name)
        return replace(self, node=self.weaver.add_processor(node, (self.node,), operator, stores))

    def with_new_keys(self) -> Strand:
        """The same place, where keys are new."""
        return replace(self, key_serde=None, rekeyed=True)

    def with_new_values(self) -> Strand:
        """The same place, where values are new."""
        return replace(self, value_serde=None)

    def merged(self, other: Strand, name: str | None) -> Strand:
        """Where both go on as one."""
        node = self.weaver.names.node("KSTREAM-MERGE-", name)
        self.weaver.add_processor(node, (self.node, other.node), stateless.pass_through())
        sources, rekeyed = self.sources | other.sources, self.rekeyed or other.rekeyed
        return replace(self, node=node, sources=sources, rekeyed=rekeyed)

    def selected(self, selector: Callable[[Any, Any], Any], name: str | None) -> Strand:
        """Where keys are ``selector(key, value)``."""
        return self.then("KSTREAM-KEY-SELECT-", name, stateless.select_key(selector)).with_new_keys()

    def repartitioned(
        self,
        name: str,
        key_serde: Serde[Any],
        value_serde: Serde[Any],
        *,
        named: bool,
        keep_null_keys: bool = False,
    ) -> Strand:
        """Behind a repartition topic ``<name>-repartition``, if keys may have changed; else here."""
        if not self.rekeyed:
            return self
        serdes: dict[str, Any] = {"key_serde": key_serde, "value_serde": value_serde}
        source = self.weaver.repartition(
            self.node, f"{name}-repartition", named=named, keep_null_keys=keep_null_keys, **serdes
        )
        return Strand(weaver=self.weaver, node=source, sources=frozenset({source}), **serdes)

    def end_in(self, topic: str, options: Produced) -> None:
        """Write to a topic."""
        node = self.weaver.names.node("KSTREAM-SINK-", options.name)
        sink = SinkNode(
            name=node,
            parents=(self.node,),
            topic=topic,
            key_serde=self.weaver.key_serde(node, options.key_serde, self.key_serde),
            value_serde=self.weaver.value_serde(node, options.value_serde, self.value_serde),
        )
        self.weaver.graph.add(sink)
