"""Interactive queries: queries, answers and read-only views. The runtime finds the stores and asks them."""

from streams.queries.answer import Answer, Rows
from streams.queries.hosts import HostInfo, KeyQueryMetadata, StreamsMetadata
from streams.queries.position import Position, PositionBound
from streams.queries.query import (
    KeyQuery,
    MultiVersionedKeyQuery,
    Page,
    RangeQuery,
    Row,
    ValueAndTimestamp,
    VersionedKeyQuery,
    WindowKeyQuery,
    WindowRangeQuery,
)
from streams.queries.result import FailureReason, QueryResult, StateQueryResult
from streams.queries.view import KeyValueView, SessionView, StoreView, WindowView

__all__ = [
    "Answer",
    "FailureReason",
    "HostInfo",
    "KeyQuery",
    "KeyQueryMetadata",
    "KeyValueView",
    "MultiVersionedKeyQuery",
    "Page",
    "Position",
    "PositionBound",
    "QueryResult",
    "RangeQuery",
    "Row",
    "Rows",
    "SessionView",
    "StateQueryResult",
    "StoreView",
    "StreamsMetadata",
    "ValueAndTimestamp",
    "VersionedKeyQuery",
    "WindowKeyQuery",
    "WindowRangeQuery",
    "WindowView",
]
