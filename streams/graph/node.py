"""The nodes a topology is made of: sources, processors and sinks, linked by their children's names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from streams.processors.wiring import Operator
from streams.serdes import Serde

OffsetReset: TypeAlias = Literal["earliest", "latest"]
TimestampExtractor: TypeAlias = Callable[[Any, Any, int], int]
"""From key, value and the record's own timestamp (ms) to the event time (ms)."""


@dataclass(slots=True, eq=False, kw_only=True)
class Node:
    """What all nodes have. Parents are named, children are filled in by the graph."""

    name: str
    parents: tuple[str, ...] = ()
    children: list[str] = field(default_factory=list)


@dataclass(slots=True, eq=False, kw_only=True)
class SourceNode(Node):
    """Reads topics. ``internal`` topics get the application id in front, and are created.

    `is_global`: every instance reads all of it into the store below it, and no task does.
    """

    topics: tuple[str, ...]
    key_serde: Serde[Any]
    value_serde: Serde[Any]
    timestamp_extractor: TimestampExtractor | None = None
    reset: OffsetReset | None = None
    internal: bool = False
    is_global: bool = False


@dataclass(slots=True, eq=False, kw_only=True)
class ProcessorNode(Node):
    """Runs an operator; ``stores`` are those it may use.

    `takes_null_keys`: it does something with records that have no key, as left joins do, so that repartition
    topics above it carry them (KIP-962).
    """

    operator: Operator
    stores: list[str] = field(default_factory=list)
    takes_null_keys: bool = False


@dataclass(slots=True, eq=False, kw_only=True)
class SinkNode(Node):
    """Writes a topic."""

    topic: str
    key_serde: Serde[Any]
    value_serde: Serde[Any]
    internal: bool = False
