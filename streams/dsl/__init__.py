"""The language: builder, streams, tables, groupings and their options."""

from __future__ import annotations

from streams.dsl.builder import StreamsBuilder
from streams.dsl.nouns import (
    BranchedKStream,
    CogroupedKStream,
    GlobalKTable,
    KGroupedStream,
    KGroupedTable,
    KStream,
    KTable,
    SessionWindowedCogroupedKStream,
    SessionWindowedKStream,
    TimeWindowedCogroupedKStream,
    TimeWindowedKStream,
)
from streams.dsl.options import (
    Consumed,
    Grouped,
    Joined,
    Materialized,
    Printed,
    Produced,
    Repartitioned,
    StreamJoined,
)
from streams.dsl.suppression import Suppressed

__all__ = [
    "BranchedKStream",
    "CogroupedKStream",
    "Consumed",
    "GlobalKTable",
    "Grouped",
    "Joined",
    "KGroupedStream",
    "KGroupedTable",
    "KStream",
    "KTable",
    "Materialized",
    "Printed",
    "Produced",
    "Repartitioned",
    "SessionWindowedCogroupedKStream",
    "SessionWindowedKStream",
    "StreamJoined",
    "StreamsBuilder",
    "Suppressed",
    "TimeWindowedCogroupedKStream",
    "TimeWindowedKStream",
]
