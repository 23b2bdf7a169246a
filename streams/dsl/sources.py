"""Sources of streams and tables. Streams of the same topics, or of the same pattern, share one.

As Kafka's InternalStreamsBuilder merges them, but when they are added: what is wrong is said at the call.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from streams.dsl.internal_builder import InternalStreamsBuilder
from streams.dsl.options import Consumed
from streams.dsl.stream import Stream
from streams.errors import TopologyError
from streams.graph import SourceNode


def stream_source(
    builder: InternalStreamsBuilder, topics: str | Sequence[str] | re.Pattern[str], options: Consumed
) -> Stream:
    """Return the stream of these topics, from a new source or from the one that reads them already."""
    if isinstance(topics, re.Pattern) and not isinstance(topics.pattern, str):
        raise TopologyError(f"topics are named by text, not by the pattern {topics.pattern!r}")
    named = (topics,) if isinstance(topics, str) else topics
    read = named if isinstance(named, re.Pattern) else frozenset(named)
    node = builder.names.node("KSTREAM-SOURCE-", options.name)
    source = builder.stream_sources.get(read)
    if source is None:
        pattern, names = (named, ()) if isinstance(named, re.Pattern) else (None, tuple(dict.fromkeys(named)))
        source = _added(builder, node, names, options, pattern)
        builder.stream_sources[read] = source
    elif source.reset != options.reset:
        raise TopologyError(
            f"{node} reads {_topics_text(source)} with reset={options.reset!r}, and {source.name} with "
            f"reset={source.reset!r}: one application reads a topic once, so give both the same"
        )
    return _below(builder, source, options)


def table_source(builder: InternalStreamsBuilder, topic: str, options: Consumed) -> Stream:
    """Return the stream of a table's updates, from a source of its own."""
    node = builder.names.node("KSTREAM-SOURCE-", options.name, "-source")
    return _below(builder, _added(builder, node, (topic,), options), options)


def _added(
    builder: InternalStreamsBuilder,
    name: str,
    topics: tuple[str, ...],
    options: Consumed,
    pattern: re.Pattern[str] | None = None,
) -> SourceNode:
    source = SourceNode(
        name=name,
        topics=topics,
        pattern=pattern,
        key_serde=builder.key_serde(name, options.key_serde),
        value_serde=builder.value_serde(name, options.value_serde),
        timestamp_extractor=options.timestamp_extractor,
        reset=options.reset,
    )
    builder.graph.add(source)
    return source


def _below(builder: InternalStreamsBuilder, source: SourceNode, options: Consumed) -> Stream:
    return Stream(
        builder=builder,
        node=source.name,
        sources=frozenset({source.name}),
        key_serde=builder.key_serde(source.name, options.key_serde),
        value_serde=builder.value_serde(source.name, options.value_serde),
    )


def _topics_text(source: SourceNode) -> str:
    return ", ".join(map(repr, source.topics)) if source.pattern is None else repr(source.pattern.pattern)
