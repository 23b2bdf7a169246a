"""The language: builder, streams, tables, groupings and their options."""

from __future__ import annotations

from streams.dsl.builder import StreamsBuilder
from streams.dsl.nouns.branched_kstream import BranchedKStream
from streams.dsl.nouns.global_ktable import GlobalKTable
from streams.dsl.nouns.kgrouped_stream import CogroupedKStream, KGroupedStream
from streams.dsl.nouns.kstream import KStream
from streams.dsl.nouns.ktable import KGroupedTable, KTable
from streams.dsl.nouns.windowed_cogrouped_kstream import (
    SessionWindowedCogroupedKStream,
    TimeWindowedCogroupedKStream,
)
from streams.dsl.nouns.windowed_kstream import SessionWindowedKStream, TimeWindowedKStream
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
