"""The language: builder, streams, tables, groupings and their options."""

from __future__ import annotations

from streams.dsl.builder import StreamsBuilder
from streams.dsl.nouns import BranchedKStream, KGroupedStream, KStream, KTable, TimeWindowedKStream
from streams.dsl.options import (
    Consumed,
    Grouped,
    Joined,
    Materialized,
    Printed,
    Produced,
    Repartitioned,
)

__all__ = [
    "BranchedKStream",
    "Consumed",
    "Grouped",
    "Joined",
    "KGroupedStream",
    "KStream",
    "KTable",
    "Materialized",
    "Printed",
    "Produced",
    "Repartitioned",
    "StreamsBuilder",
    "TimeWindowedKStream",
]
