"""Keyword options that several signatures share, a `TypedDict` for each set (PEP 692).

The overloads of a method name the set once, as ``**options: Unpack[JoinOptions]``.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypedDict, TypeVar

from streams.dsl.options import Materialized
from streams.graph import OffsetReset, TimestampExtractor
from streams.processors.coroutines import Context
from streams.processors.joins.asof import Direction
from streams.processors.stateless.in_flight import Ordered
from streams.processors.windowing.join_windows import JoinWindows
from streams.processors.windowing.windows import Duration
from streams.serdes import SerdeLike

Method = TypeVar("Method", bound=Callable[..., Any])


def takes(options: type, **defaults: Any) -> Callable[[Method], Method]:
    """Return a decorator of a method with ``**options``, which are the keys of this `TypedDict`.

    The method gets a value for each option: the caller's, else its default, which is None unless given here.
    An unknown option is refused with TypeError, as in any call.
    ``help()`` shows every option and its default.
    """
    values = {name: defaults.get(name) for name in options.__annotations__}

    def decorate(method: Method) -> Method:
        signature = inspect.signature(method)
        *own, _ = signature.parameters.values()
        refused = f"{method.__qualname__}() got an unexpected keyword argument"
        accepted = {*values, *(parameter.name for parameter in own)}

        @functools.wraps(method)
        def with_defaults(*arguments: Any, **keywords: Any) -> Any:
            for name in keywords:
                if name not in accepted:
                    raise TypeError(f"{refused} {name!r}")
            return method(*arguments, **{**values, **keywords})

        shown = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=default,
                annotation=_text(options.__annotations__[name]),
            )
            for name, default in values.items()
        ]
        with_defaults.__signature__ = signature.replace(parameters=[*own, *shown])  # type: ignore[attr-defined]
        return with_defaults  # type: ignore[return-value]

    return decorate


def _text(annotation: Any) -> str:
    """Return an annotation as it is written: a `TypedDict` keeps it as a `ForwardRef`."""
    return str(getattr(annotation, "__forward_arg__", annotation))


class StreamSourceOptions(TypedDict, total=False):
    """Options of a topic that is read as a stream."""

    timestamp_extractor: TimestampExtractor | None
    """``timestamp_extractor(key, value, record_timestamp)`` returns the event time in ms."""
    reset: OffsetReset | None
    """Where reading starts in a partition without a committed offset."""
    name: str | None
    """The source node's name; generated if None."""


class TableSourceOptions(TypedDict, total=False):
    """Options of a topic that is read as a table."""

    timestamp_extractor: TimestampExtractor | None
    """``timestamp_extractor(key, value, record_timestamp)`` returns the event time in ms."""
    name: str | None
    """The nodes' name; generated if None."""
    store: str | Materialized | None
    """The name, or all settings, of the table's store."""


class TableOptions(TypedDict, total=False):
    """Options of a table that is derived from others."""

    name: str | None
    """The node's name; generated if None."""
    store: str | Materialized | None
    """The name, or all settings, of a store for the result. A foreign-key join has a store in any case."""


class StreamJoinOptions(TypedDict, total=False):
    """Options of a join of two streams; they take precedence over those in a `StreamJoined`."""

    key_serde: SerdeLike | None
    """Serde of the keys of both streams."""
    value_serde: SerdeLike | None
    """Serde of this stream's values."""
    other_value_serde: SerdeLike | None
    """Serde of the other stream's values."""
    name: str | None
    """Name of the join's nodes and of its repartition topics; generated if None."""
    store: str | None
    """Name of the join's stores and their changelog topics; generated if None."""


class JoinOptions(StreamJoinOptions, total=False):
    """Options of a join of a stream with a stream or a table."""

    windows: JoinWindows | None
    """How far apart in time two joined records may be; for a join of two streams only, which requires it."""
    grace: Duration | None
    """How long records wait, by stream time, for updates of a versioned table (KIP-923)."""


class IntervalJoinOptions(StreamJoinOptions, total=False):
    """Options of an interval join. Durations are timedeltas, or ms; each is 0 by default."""

    before: Duration
    """How much earlier than this stream's record the other's may be."""
    after: Duration
    """How much later than this stream's record the other's may be."""
    grace: Duration
    """How late a record may come, by stream time."""


class AsOfJoinOptions(StreamJoinOptions, total=False):
    """Options of an as-of join. Durations are timedeltas, or ms."""

    direction: Direction
    """Which record is a match: the last earlier one ("backward", the default), the first later one
    ("forward"), or the nearest ("nearest").
    """
    allow_exact_matches: bool
    """Whether a record of the same time is a match; True by default."""
    grace: Duration
    """How late a record may come, by stream time; 0 by default."""
    idle_timeout: Duration | None
    """Wall-clock time without input after which waiting records go on; never if None."""


class AsyncOptions(TypedDict, total=False):
    """Options of an asynchronous node. Durations are timedeltas, or ms."""

    max_in_flight: int
    """How many calls of a task run at one time; 100 by default. The task's input waits for a free place."""
    ordered: Ordered
    """Which records keep their order: those of a key ("key", the default), all of a task ("partition"), or
    none ("none").
    """
    timeout: Duration | None
    """How long a call may take before it is cancelled and counts as failed; no limit if None."""
    retries: int
    """How many more times a failed call is tried; 0 by default."""
    retry_backoff: Duration
    """How long to wait before the first retry, 100 ms by default; doubled for each further one."""
    context: Context | None
    """``context()`` returns an async context manager; its value is the mapper's last argument."""
    name: str | None
    """The node's name; generated if None."""
