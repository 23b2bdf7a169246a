"""The choice of a stream's join: its options checked, and the join made that the other side calls for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streams.dsl.asof_join import join_streams_as_of
from streams.dsl.global_table import GlobalTable
from streams.dsl.keywords import AsOfJoinOptions, JoinOptions, StreamJoinOptions
from streams.dsl.options import Joined, StreamJoined, options_with
from streams.dsl.stream import Stream
from streams.dsl.stream_join import join_streams
from streams.dsl.table import Table
from streams.errors import TopologyError
from streams.processors.joins.asof import AsOf
from streams.processors.windowing.join_windows import JoinWindows
from streams.processors.windowing.windows import Duration


def joined(
    stream: Stream,
    other: Stream | Table | GlobalTable,
    joiner: Callable[..., Any],
    defaults: Joined | StreamJoined | None,
    key_selector: Callable[[Any, Any], Any] | None,
    keywords: JoinOptions,
    *,
    left: bool,
) -> Stream:
    """Join a stream with a stream or a table; ``left``: records without a match are joined with None.

    Raises TopologyError if an option is for another kind of join.
    """
    windows = keywords["windows"]
    options = _join_options(defaults, windows, keywords["grace"], keywords)
    if isinstance(other, GlobalTable) and isinstance(options, Joined):
        if options.grace is not None:
            raise TopologyError("grace= is for the join with a versioned table, a global one never is")
        return other.joined(stream, key_selector, joiner, options.name, left=left)
    if key_selector is not None:
        raise TopologyError("key_selector= is for the join with a global table; see select_key() for others")
    if isinstance(other, Table) and isinstance(options, Joined):
        return other.joined(stream, joiner, options, left=left)
    if isinstance(other, Stream) and isinstance(options, StreamJoined) and windows is not None:
        return join_streams(stream, other, joiner, windows, options, keep_left=left, keep_right=False)
    raise _cannot_join(other)


def joined_within(
    stream: Stream,
    other: Stream,
    joiner: Callable[..., Any],
    windows: JoinWindows | None,
    defaults: StreamJoined | None,
    keywords: StreamJoinOptions,
    *,
    outer: bool = False,
) -> Stream:
    """Join two streams within windows; ``outer``: records of either without a match are joined with None.

    Raises TopologyError if ``windows`` is None.
    """
    options = _join_options(defaults, windows, None, keywords)
    if not isinstance(options, StreamJoined) or windows is None:
        raise _cannot_join(other)
    return join_streams(stream, other, joiner, windows, options, keep_left=outer, keep_right=outer)


def joined_as_of(
    stream: Stream,
    other: Stream,
    joiner: Callable[..., Any],
    defaults: StreamJoined | None,
    keywords: AsOfJoinOptions,
    *,
    outer: bool,
) -> Stream:
    """Join each record with at most one of another stream.

    ``outer``: a record without a match is joined with None.
    """
    as_of = AsOf(
        tolerance=keywords["tolerance"],
        direction=keywords["direction"],
        allow_exact_matches=keywords["allow_exact_matches"],
        grace=keywords["grace"],
    )
    options = _stream_join_options(defaults, keywords)
    return join_streams_as_of(stream, other, joiner, as_of, options, keywords["idle_timeout"], outer=outer)


def _join_options(
    defaults: Joined | StreamJoined | None,
    windows: JoinWindows | None,
    grace: Duration | None,
    keywords: StreamJoinOptions,
) -> Joined | StreamJoined:
    """Return a join's options: `StreamJoined` where there are windows, else `Joined`."""
    if windows is None and not isinstance(defaults, StreamJoined):
        for name, value in (
            ("other_value_serde", keywords["other_value_serde"]),
            ("store", keywords["store"]),
        ):
            if value is not None:
                raise TopologyError(
                    f"{name}= is for the join of two streams, which needs windows=JoinWindows(...)"
                )
        return options_with(
            defaults,
            Joined,
            key_serde=keywords["key_serde"],
            value_serde=keywords["value_serde"],
            name=keywords["name"],
            grace=grace,
        )
    if grace is not None:
        raise TopologyError(
            "grace= is for the join with a versioned table; that of windows is in JoinWindows()"
        )
    if isinstance(defaults, Joined):
        raise TopologyError("the options of a join of two streams are StreamJoined(...), not Joined(...)")
    return _stream_join_options(defaults, keywords)


def _stream_join_options(defaults: StreamJoined | None, keywords: StreamJoinOptions) -> StreamJoined:
    return options_with(
        defaults,
        StreamJoined,
        key_serde=keywords["key_serde"],
        value_serde=keywords["value_serde"],
        other_value_serde=keywords["other_value_serde"],
        name=keywords["name"],
        store=keywords["store"],
    )


def _cannot_join(other: Stream | Table | GlobalTable) -> TopologyError:
    if isinstance(other, Stream):
        return TopologyError(
            "a stream is joined with another within windows=JoinWindows(before=..., after=...)"
        )
    if isinstance(other, Table):
        return TopologyError(
            "a stream is joined with a table as it is then: without windows and StreamJoined"
        )
    return TopologyError(
        "a stream is joined with a KStream, a KTable or a GlobalKTable, not with a GlobalKTable"
    )
