"""The language: builder, streams, tables, groupings and their options."""

from __future__ import annotations

from streams.dsl.builder import StreamsBuilder
from streams.dsl.nouns import KGroupedStream, KStream, KTable, SessionWindowedKStream, TimeWindowedKStream
from streams.dsl.options import Consumed, Grouped, Joined, Materialized, Produced

__all__ = [
    "Consumed",
    "Grouped",
    "Joined",
    "KGroupedStream",
    "KStream",
    "KTable",
    "Materialized",
    "Produced",
    "SessionWindowedKStream",
    "StreamsBuilder",
    "TimeWindowedKStream",
]
