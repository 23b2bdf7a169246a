"""The nodes a topology is made of: sources, processors and sinks, linked by their children's names."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from streams.processors.record import RecordContext
from streams.processors.wiring import Operator
from streams.serdes import Serde

OffsetReset: TypeAlias = Literal["earliest", "latest"]
TimestampExtractor: TypeAlias = Callable[[Any, Any, int], int]
"""From key, value and the record's own timestamp (ms) to the event time (ms)."""

TopicChooser: TypeAlias = Callable[[Any, Any, RecordContext], str]
"""From key, value and context of a record to the topic it goes to."""
StreamPartitioner: TypeAlias = Callable[[str, Any, Any, int], int | Collection[int] | None]
"""From topic (internal ones without the application id), key, value and the number of partitions to the
partition, or to several; to none drops the record. None leaves it to the key's hash."""


@dataclass(slots=True, eq=False, kw_only=True)
class Node:
    """What all nodes have. Parents are named, children are filled in by the graph."""

    name: str
    parents: tuple[str, ...] = ()
    reads_of: tuple[str, ...] = ()
    """Of a join's nodes, both nodes that are joined: all of a join is built behind them."""
    children: list[str] = field(default_factory=list)


@dataclass(slots=True, eq=False, kw_only=True)
class SourceNode(Node):
    """Reads topics. ``internal`` topics get the application id in front, and are created.

    `pattern`: reads all topics whose whole names match it. `topics` are then those that are known to, none
    until somebody has looked; they change while the application runs.
    `is_global`: every instance reads all of it into the store below it, and no task does. `by_processor`: a
    processor of the user's does, and not the records themselves.
    """

    topics: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None
    key_serde: Serde[Any]
    value_serde: Serde[Any]
    timestamp_extractor: TimestampExtractor | None = None
    reset: OffsetReset | None = None
    internal: bool = False
    is_global: bool = False
    by_processor: bool = False
    partitions: int | None = None
    """Of an internal topic, where the user says how many."""


@dataclass(slots=True, eq=False, kw_only=True)
class ProcessorNode(Node):
    """Runs an operator; ``stores`` are those it may use.

    `takes_null_keys`: it does something with records that have no key, as left joins do, so that repartition
    topics above it carry them (KIP-962). `grace_ms`: of an aggregation by windows, how long after its end a
    window may still change. `changes`: what a record may have anew, where it matters to
    `streams.graph.merged_topics`: keys, or values and perhaps keys. `is_merge`: of `KStream.merge`.
    """

    operator: Operator
    stores: list[str] = field(default_factory=list)
    takes_null_keys: bool = False
    grace_ms: int | None = None
    changes: Literal["nothing", "keys", "values"] = "nothing"
    is_merge: bool = False


@dataclass(slots=True, eq=False, kw_only=True)
class SinkNode(Node):
    """Writes a topic, the same for all records, or else the one that ``choose_topic`` names."""

    topic: str | None
    choose_topic: TopicChooser | None = None
    key_serde: Serde[Any]
    value_serde: Serde[Any]
    internal: bool = False
    partitioner: StreamPartitioner | None = None
