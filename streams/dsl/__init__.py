"""The language: builder, streams, tables, groupings and their options."""

from __future__ import annotations

from streams.dsl.builder import StreamsBuilder
from streams.dsl.grouped import KGroupedStream, TimeWindowedKStream
from streams.dsl.options import Consumed, Grouped, Joined, Materialized, Produced
from streams.dsl.stream import KStream
from streams.dsl.table import KTable

__all__ = [
    "Consumed",
    "Grouped",
    "Joined",
    "KGroupedStream",
    "KStream",
    "KTable",
    "Materialized",
    "Produced",
    "StreamsBuilder",
    "TimeWindowedKStream",
]
