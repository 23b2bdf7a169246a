"""Keyword options that several signatures share, a `TypedDict` for each set (PEP 692).

The overloads of a method name the set once, as ``**options: Unpack[JoinOptions]``.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Literal, Required, TypedDict, TypeVar

from streams.dsl.options import Materialized
from streams.graph import OffsetReset, StreamPartitioner, TimestampExtractor
from streams.processors.coroutines import Context
from streams.processors.joins.asof import Direction
from streams.processors.stateless.in_flight import Ordered
from streams.processors.windowing.join_windows import JoinWindows
from streams.processors.windowing.windows import Duration
from streams.serdes import SerdeLike
from streams.state import StoreSpec

Method = TypeVar("Method", bound=Callable[..., Any])
BatchForm = Literal["list", "arrow"]


def takes(options: type, **defaults: Any) -> Callable[[Method], Method]:
    """Return a decorator of a method with ``**options``, which are the keys of this `TypedDict`.

    The method gets a value for each option: the caller's, else its default, which is None unless given here.
    A call with an unknown option, or without a ``Required`` one, raises TypeError.
    ``help()`` shows every option and its default.
    """
    annotations = {name: _text(annotation) for name, annotation in options.__annotations__.items()}
    # Annotations that are not evaluated leave a required option out of ``__required_keys__``.
    required = [name for name, annotation in annotations.items() if annotation.startswith("Required[")]
    values = {name: defaults.get(name) for name in annotations if name not in required}

    def decorate(method: Method) -> Method:
        signature = inspect.signature(method)
        *own, _ = signature.parameters.values()
        call = f"{method.__qualname__}()"
        accepted = {*annotations, *(parameter.name for parameter in own)}

        @functools.wraps(method)
        def with_defaults(*arguments: Any, **keywords: Any) -> Any:
            for name in keywords:
                if name not in accepted:
                    raise TypeError(
                        f"{call} got an unexpected keyword argument {name!r}; its options are "
                        f"{', '.join(annotations)}"
                    )
            for name in required:
                if name not in keywords:
                    raise TypeError(f"{call} missing a required keyword-only argument: {name!r}")
            return method(*arguments, **{**values, **keywords})

        shown = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=values.get(name, inspect.Parameter.empty),
                annotation=annotation.removeprefix("Required[").removesuffix("]")
                if name in required
                else annotation,
            )
            for name, annotation in annotations.items()
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


class StreamTableOptions(TypedDict, total=False):
    """Options of a table that is read from a stream."""

    key_serde: SerdeLike | None
    """Serde of the keys; the stream's if None."""
    value_serde: SerdeLike | None
    """Serde of the values; the stream's if None."""
    name: str | None
    """The node's name; generated if None."""
    store: str | Materialized | None
    """The name, or all settings, of the table's store; a generated name if None."""


class GroupOptions(TypedDict, total=False):
    """Options of a grouping; they take precedence over those in a `Grouped`."""

    key_serde: SerdeLike | None
    """Serde of the grouping's keys; that of the grouped stream, if known, if None."""
    value_serde: SerdeLike | None
    """Serde of the grouped values; that of the grouped stream, if known, if None."""
    name: str | None
    """Name of the repartition topic, if one is needed; generated if None."""


class SinkOptions(TypedDict, total=False):
    """Options of a topic that is written; they take precedence over those in a `Produced`."""

    key_serde: SerdeLike | None
    """Serde of the keys; the stream's if None."""
    value_serde: SerdeLike | None
    """Serde of the values; the stream's if None."""
    partitioner: StreamPartitioner | None
    """``partitioner(topic, key, value, partitions)`` returns a record's partition, or several.

    None leaves the choice to the key's hash. An empty collection drops the record.
    """
    name: str | None
    """The sink's name; generated if None."""


class RepartitionOptions(TypedDict, total=False):
    """Options of a repartition topic; they take precedence over those in a `Repartitioned`."""

    key_serde: SerdeLike | None
    """Serde of the keys; the stream's if None."""
    value_serde: SerdeLike | None
    """Serde of the values; the stream's if None."""
    partitions: int | None
    """The topic's number of partitions; as many as the stream's sources have if None."""
    partitioner: StreamPartitioner | None
    """``partitioner(topic, key, value, partitions)``, as in `SinkOptions`."""
    name: str | None
    """The name in the topic's name; generated if None."""


class ProcessOptions(TypedDict, total=False):
    """Options of a processor of your own."""

    stores: Sequence[str | StoreSpec]
    """The processor's stores, none by default: names of stores of `StreamsBuilder.add_store`, or a
    `StoreSpec` for each store to add.
    """
    name: str | None
    """The node's name; generated if None."""


class BatchOptions(TypedDict, total=False):
    """Options of a node that calls its function with many records at a time."""

    max_records: int
    """The most records in one call; 1000 by default."""
    as_: BatchForm
    """Form of the records for the function: "list" (the default), or "arrow", a `pyarrow.RecordBatch`."""
    name: str | None
    """The node's name; generated if None."""


class FillWindowsOptions(TypedDict, total=False):
    """Options of filling gaps between windows. Durations are timedeltas, or ms."""

    limit: Required[int]
    """The most windows to add in one gap; 1 or more."""
    advance: Duration | None
    """The time between the starts of two windows that overlap; the windows' size if None."""
    name: str | None
    """The node's name; generated if None."""
    store: str | Materialized | None
    """The name, or all settings, of the store of each key's last window; a generated name if None."""


class DeduplicateOptions(TypedDict, total=False):
    """Options of leaving out duplicates. Durations are timedeltas, or ms."""

    within: Required[Duration]
    """How far apart in time two records with one id may be for the second to be a duplicate; more than 0."""
    grace: Duration
    """How late a record may come, by stream time; 0 by default."""
    id_serde: SerdeLike | None
    """Serde of the results of ``key``; MessagePack if None."""
    name: str | None
    """The node's name; generated if None."""
    store: str | Materialized | None
    """The name, or all settings, of the store of ids; a generated name if None."""


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


class OuterJoinOptions(StreamJoinOptions, total=False):
    """Options of an outer join of two streams: those of `StreamJoinOptions`, and one more."""

    windows: Required[JoinWindows]
    """How far apart in time two joined records may be."""


class JoinOptions(StreamJoinOptions, total=False):
    """Options of a join of a stream with a stream or a table: those of `StreamJoinOptions`, and two more."""

    windows: JoinWindows | None
    """How far apart in time two joined records may be; for a join of two streams only, which requires it."""
    grace: Duration | None
    """How long records wait, by stream time, for updates of a versioned table (KIP-923)."""


class IntervalJoinOptions(StreamJoinOptions, total=False):
    """Options of an interval join: those of `StreamJoinOptions`, and three more.

    Durations are timedeltas, or ms; each is 0 by default.
    """

    before: Duration
    """How much earlier than this stream's record the other's may be."""
    after: Duration
    """How much later than this stream's record the other's may be."""
    grace: Duration
    """How late a record may come, by stream time."""


class AsOfJoinOptions(StreamJoinOptions, total=False):
    """Options of an as-of join: those of `StreamJoinOptions`, and five more.

    Durations are timedeltas, or ms.
    """

    tolerance: Required[Duration]
    """How far from a record's time its match may be."""
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
