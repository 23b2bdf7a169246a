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
"""Returns the event time (ms) of a key, a value and the record's own timestamp (ms)."""

TopicChooser: TypeAlias = Callable[[Any, Any, RecordContext], str]
"""Returns the topic to write to for a record's key, value and context."""
StreamPartitioner: TypeAlias = Callable[[str, Any, Any, int], int | Collection[int] | None]
"""Returns a record's partition, or several; an empty collection drops the record, None leaves it to the key.

Takes the topic (internal ones without the application id), key, value and the topic's partition count.
"""


@dataclass(slots=True, eq=False, kw_only=True)
class Node:
    """The base of all nodes."""

    name: str
    parents: tuple[str, ...] = ()
    """The names of the parents."""
    reads_of: tuple[str, ...] = ()
    """The names of both joined nodes, if this is a node of a join; it is built after both."""
    children: list[str] = field(default_factory=list)
    """The names of the children, set by the graph."""


@dataclass(slots=True, eq=False, kw_only=True)
class SourceNode(Node):
    """A node that reads topics."""

    topics: tuple[str, ...] = ()
    """The topics. With a `pattern`, those known to match it, none at first; they change at run time."""
    pattern: re.Pattern[str] | None = None
    """If set, the node reads all topics whose full names match it."""
    key_serde: Serde[Any]
    value_serde: Serde[Any]
    timestamp_extractor: TimestampExtractor | None = None
    reset: OffsetReset | None = None
    internal: bool = False
    """True: the application creates the topics, with its id in front of their names."""
    is_global: bool = False
    """True: every instance reads all partitions into the store below, and no task reads any."""
    by_processor: bool = False
    """True, of a global source: a user's processor fills the store, instead of the records themselves."""
    partitions: int | None = None
    """The partition count of an internal topic, if the user has set it."""


@dataclass(slots=True, eq=False, kw_only=True)
class ProcessorNode(Node):
    """A node that runs an operator."""

    operator: Operator
    stores: list[str] = field(default_factory=list)
    """The names of the stores that the operator may use."""
    takes_null_keys: bool = False
    """True: the operator accepts records without a key, as left joins do.

    Repartition topics above the node then keep such records (KIP-962).
    """
    grace_ms: int | None = None
    """How long after its end a window may still change, ms; only of aggregations by windows."""
    changes: Literal["nothing", "keys", "values"] = "nothing"
    """The part of a record that the operator may change, for `streams.graph.merged_topics`.

    "values" means values and perhaps keys.
    """
    is_merge: bool = False
    """True for the node of `KStream.merge`."""


@dataclass(slots=True, eq=False, kw_only=True)
class SinkNode(Node):
    """A node that writes a topic."""

    topic: str | None
    """The topic of all records, None if `choose_topic` chooses one for each record."""
    choose_topic: TopicChooser | None = None
    key_serde: Serde[Any]
    value_serde: Serde[Any]
    internal: bool = False
    partitioner: StreamPartitioner | None = None
