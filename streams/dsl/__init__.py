"""The language: builder, streams, tables, groupings and their options."""

from __future__ import annotations

from streams.dsl.builder import StreamsBuilder
from streams.dsl.nouns import KGroupedStream, KGroupedTable, KStream, KTable, TimeWindowedKStream
from streams.dsl.options import Consumed, Grouped, Joined, Materialized, Produced, StreamJoined
from streams.dsl.suppression import Suppressed

__all__ = [
    "Consumed",
    "Grouped",
    "Joined",
    "KGroupedStream",
    "KGroupedTable",
    "KStream",
    "KTable",
    "Materialized",
    "Produced",
    "StreamJoined",
    "StreamsBuilder",
    "Suppressed",
    "TimeWindowedKStream",
]
