"""The language: builder, streams, tables, groupings and their options."""

from __future__ import annotations

from streams.dsl.builder import StreamsBuilder
from streams.dsl.nouns import GlobalKTable, KGroupedStream, KStream, KTable, TimeWindowedKStream
from streams.dsl.options import Consumed, Grouped, Joined, Materialized, Produced, StreamJoined

__all__ = [
    "Consumed",
    "GlobalKTable",
    "Grouped",
    "Joined",
    "KGroupedStream",
    "KStream",
    "KTable",
    "Materialized",
    "Produced",
    "StreamJoined",
    "StreamsBuilder",
    "TimeWindowedKStream",
]
