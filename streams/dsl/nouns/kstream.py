"""`KStream`: what can be done with a stream.

Nodes are added to the graph by `stream`, and by a file for each of the greater operators.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar, Unpack, overload

from streams.dsl.arity import check_supplier, takes_key, with_key
from streams.dsl.asynchronous import flat_mapped_values, mapped, mapped_values
from streams.dsl.batching import mapped_in_batches, mapped_values_in_batches
from streams.dsl.branches import Branches
from streams.dsl.deduplication import deduplicated
from streams.dsl.global_table import GlobalTable
from streams.dsl.grouping import Grouping
from streams.dsl.keywords import (
    AsOfJoinOptions,
    AsyncOptions,
    BatchOptions,
    DeduplicateOptions,
    FillWindowsOptions,
    GroupOptions,
    IntervalJoinOptions,
    JoinOptions,
    OuterJoinOptions,
    ProcessOptions,
    RepartitionOptions,
    SinkOptions,
    StreamTableOptions,
    takes,
)
from streams.dsl.nouns.branched_kstream import BranchedKStream
from streams.dsl.nouns.global_ktable import GlobalKTable
from streams.dsl.nouns.kgrouped_stream import KGroupedStream
from streams.dsl.nouns.ktable import KTable
from streams.dsl.options import (
    Grouped,
    Joined,
    Printed,
    Produced,
    Repartitioned,
    StreamJoined,
    as_materialized,
    options_with,
)
from streams.dsl.stream import Stream
from streams.dsl.stream_joins import joined as join_by_kind
from streams.dsl.stream_joins import joined_as_of, joined_within
from streams.dsl.table import Table, table_of_stream
from streams.dsl.window_filling import filled
from streams.errors import TopologyError
from streams.graph import TopicChooser
from streams.processors.custom import FixedKeyProcessor, Processor, run_fixed_key_processor, run_processor
from streams.processors.stateless import stateless
from streams.processors.stateless.fields import dropping, filling
from streams.processors.windowing.fill_windows import Filling
from streams.processors.windowing.join_windows import JoinWindows
from streams.processors.windowing.windows import milliseconds
from streams.serdes import Windowed

K = TypeVar("K")
V = TypeVar("V")
NewK = TypeVar("NewK")
NewV = TypeVar("NewV")
T = TypeVar("T")


class KStream(Generic[K, V]):
    """A stream under construction; every method adds a node and returns the stream below it.

    Serdes are handed on while keys (or values) stay what they are. An operator that may change the key marks
    the stream, and the next stateful operator sends it through a repartition topic.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    # -- record by record

    def filter(self, predicate: Callable[[K, V], bool], *, name: str | None = None) -> KStream[K, V]:
        """Keep records for which ``predicate(key, value)`` is true."""
        return KStream(self._stream.then("KSTREAM-FILTER-", name, stateless.filter_records(predicate)))

    def filter_not(self, predicate: Callable[[K, V], bool], *, name: str | None = None) -> KStream[K, V]:
        """Keep records for which ``predicate(key, value)`` is false."""
        operator = stateless.filter_records(predicate, forward_if=False)
        return KStream(self._stream.then("KSTREAM-FILTER-", name, operator))

    def map(
        self, mapper: Callable[[K, V], tuple[NewK, NewV]], *, name: str | None = None
    ) -> KStream[NewK, NewV]:
        """Replace key and value by ``mapper(key, value)``."""
        stream = self._stream.then("KSTREAM-MAP-", name, stateless.map_records(mapper))
        return KStream(stream.with_new_keys().with_new_values())

    @overload
    def map_values(self, mapper: Callable[[V], NewV], *, name: str | None = None) -> KStream[K, NewV]: ...
    @overload
    def map_values(self, mapper: Callable[[K, V], NewV], *, name: str | None = None) -> KStream[K, NewV]: ...
    def map_values(self, mapper: Callable[..., NewV], *, name: str | None = None) -> KStream[K, NewV]:
        """Replace the value by ``mapper(value)``, or ``mapper(key, value)``."""
        has_key = takes_key(mapper, "map_values")
        operator = stateless.map_values_with_key(mapper) if has_key else stateless.map_values(mapper)
        return KStream(self._stream.then("KSTREAM-MAPVALUES-", name, operator).with_new_values())

    def flat_map(
        self, mapper: Callable[[K, V], Iterable[tuple[NewK, NewV]]], *, name: str | None = None
    ) -> KStream[NewK, NewV]:
        """Replace a record by those of ``mapper(key, value)``."""
        stream = self._stream.then("KSTREAM-FLATMAP-", name, stateless.flat_map(mapper))
        return KStream(stream.with_new_keys().with_new_values())

    @overload
    def flat_map_values(
        self, mapper: Callable[[V], Iterable[NewV]], *, name: str | None = None
    ) -> KStream[K, NewV]: ...
    @overload
    def flat_map_values(
        self, mapper: Callable[[K, V], Iterable[NewV]], *, name: str | None = None
    ) -> KStream[K, NewV]: ...
    def flat_map_values(
        self, mapper: Callable[..., Iterable[NewV]], *, name: str | None = None
    ) -> KStream[K, NewV]:
        """Replace a value by those of ``mapper(value)``, or ``mapper(key, value)``, under the same key."""
        has_key = takes_key(mapper, "flat_map_values")
        operator = (
            stateless.flat_map_values_with_key(mapper) if has_key else stateless.flat_map_values(mapper)
        )
        return KStream(self._stream.then("KSTREAM-FLATMAPVALUES-", name, operator).with_new_values())

    def select_key(self, selector: Callable[[K, V], NewK], *, name: str | None = None) -> KStream[NewK, V]:
        """Replace the key by ``selector(key, value)``."""
        return KStream(self._stream.selected(selector, name))

    def peek(self, action: Callable[[K, V], object], *, name: str | None = None) -> KStream[K, V]:
        """Call ``action(key, value)`` as records pass."""
        return KStream(self._stream.then("KSTREAM-PEEK-", name, stateless.peek(action)))

    def foreach(self, action: Callable[[K, V], object], *, name: str | None = None) -> None:
        """Call ``action(key, value)``; the stream ends here."""
        self._stream.then("KSTREAM-FOREACH-", name, stateless.foreach(action))

    def merge(self, other: KStream[K, V], *, name: str | None = None) -> KStream[K, V]:
        """Merge both streams into one; the order between their records is undefined."""
        return KStream(self._stream.merged(other._stream, name))

    @takes(ProcessOptions, stores=())
    def process(
        self, supplier: Callable[[], Processor[K, V]], **options: Unpack[ProcessOptions]
    ) -> KStream[Any, Any]:
        """Run a processor of your own; ``supplier()`` makes one per task."""
        check_supplier(supplier, "process")
        stream = self._stream.processed("KSTREAM-PROCESSOR-", run_processor(supplier), **options)
        return KStream(stream.with_new_keys().with_new_values())

    @takes(ProcessOptions, stores=())
    def process_values(
        self, supplier: Callable[[], FixedKeyProcessor[K, V]], **options: Unpack[ProcessOptions]
    ) -> KStream[K, Any]:
        """Run a processor of your own that leaves keys as they are; ``supplier()`` makes one per task."""
        check_supplier(supplier, "process_values")
        operator = run_fixed_key_processor(supplier)
        stream = self._stream.processed("KSTREAM-PROCESSVALUES-", operator, **options)
        return KStream(stream.with_new_values())

    def split(self, *, name: str | None = None) -> BranchedKStream[K, V]:
        """Send each record to one of several streams: `BranchedKStream.branch` adds them (KIP-418)."""
        return BranchedKStream(Branches(self._stream, name), KStream)

    @takes(RepartitionOptions)
    def repartition(
        self, repartitioned: Repartitioned | None = None, **options: Unpack[RepartitionOptions]
    ) -> KStream[K, V]:
        """Send the stream through a topic ``<application id>-<name>-repartition``.

        The keyword options take precedence over those in ``repartitioned``.
        """
        return KStream(self._stream.sent_through(options_with(repartitioned, Repartitioned, **options)))

    # -- asynchronous

    @takes(AsyncOptions, max_in_flight=100, ordered="key", retries=0, retry_backoff=100)
    def map_values_async(
        self, mapper: Callable[..., Awaitable[NewV]], **options: Unpack[AsyncOptions]
    ) -> KStream[K, NewV]:
        """Replace the value by the result of ``await mapper(value)``, or ``mapper(key, value)``.

        The coroutines run in the application's event loop, at most ``max_in_flight`` of a task at one time;
        then its input waits. ``ordered`` says which records keep their order. With "key", the calls for
        records of one key follow each other; records without a key have no order.

        A call that takes longer than ``timeout`` is cancelled, and fails. A call that fails is tried
        ``retries`` times more, after ``retry_backoff``, which doubles each time. After that the processing
        exception handler decides. A commit waits until no record is in flight.

        ``context()`` returns an async context manager, which is entered before the first call and left when
        the application ends. Its value is the mapper's last argument: ``mapper(value, session)``.
        """
        return KStream(mapped_values(self._stream, mapper, **options))

    @takes(AsyncOptions, max_in_flight=100, ordered="key", retries=0, retry_backoff=100)
    def flat_map_values_async(
        self, mapper: Callable[..., Awaitable[Iterable[NewV]]], **options: Unpack[AsyncOptions]
    ) -> KStream[K, NewV]:
        """Replace a value by those that ``await mapper(value)``, or ``mapper(key, value)``, returns.

        They have the same key. Everything else is as in `map_values_async`.
        """
        return KStream(flat_mapped_values(self._stream, mapper, **options))

    @takes(AsyncOptions, max_in_flight=100, ordered="key", retries=0, retry_backoff=100)
    def map_async(
        self, mapper: Callable[..., Awaitable[tuple[NewK, NewV]]], **options: Unpack[AsyncOptions]
    ) -> KStream[NewK, NewV]:
        """Replace key and value by the tuple that ``await mapper(key, value)`` returns.

        Everything else is as in `map_values_async`.
        """
        return KStream(mapped(self._stream, mapper, **options))

    # -- in batches

    @takes(BatchOptions, max_records=1000, as_="list")
    def map_values_batch(
        self, function: Callable[..., Iterable[NewV]], **options: Unpack[BatchOptions]
    ) -> KStream[K, NewV]:
        """Replace the values of many records of a task by those of ``function(values)``, or ``function(keys,
        values)``: lists of up to ``max_records``. It returns as many, in their order; a NumPy array will do.

        With ``as_="arrow"``, ``function(batch)`` takes a `pyarrow.RecordBatch` with columns key, value and
        timestamp, and returns an array, or a batch with a column value. Needs the extra ``arrow``.

        A batch ends at the latest when no more records are at hand, or a commit is made. If the function
        raises, it is called again for each record, and the processing exception handler decides about those
        over which it raises again.
        """
        return KStream(mapped_values_in_batches(self._stream, function, **options))

    @takes(BatchOptions, max_records=1000, as_="list")
    def map_batch(self, function: Callable[..., Any], **options: Unpack[BatchOptions]) -> KStream[Any, Any]:
        """Replace many records by those of ``function(records)``: lists of `Record`, one for each, in their
        order. What is no `Record` in what it returns is the record's new value.

        With ``as_="arrow"`` it takes and returns batches with columns key, value and timestamp; a column that
        it leaves out stays. For the rest as `map_values_batch`.
        """
        return KStream(mapped_in_batches(self._stream, function, **options))

    # -- out

    @takes(SinkOptions)
    def to(
        self, topic: str | TopicChooser, produced: Produced | None = None, **options: Unpack[SinkOptions]
    ) -> None:
        """Write the stream to a topic; the stream ends here.

        ``topic(key, value, context)``, if it is a function, returns the topic of each record, which must
        exist. The keyword options take precedence over those in ``produced``.
        """
        self._stream.end_in(topic, options_with(produced, Produced, **options))

    def print(
        self,
        printed: Printed | None = None,
        *,
        label: str | None = None,
        mapper: Callable[[K, V], str] | None = None,
        path: str | Path | None = None,
        name: str | None = None,
    ) -> None:
        """Print ``[label]: key, value`` of each record, or what the mapper makes of it, to stdout or a file;
        the stream ends here.
        """
        options = options_with(printed, Printed, label=label, mapper=mapper, path=path, name=name)
        self._stream.printed(options)

    # -- stateful

    @takes(GroupOptions)
    def group_by_key(
        self, grouped: Grouped | None = None, **options: Unpack[GroupOptions]
    ) -> KGroupedStream[K, V]:
        """Group by the key that the stream has."""
        return KGroupedStream(Grouping.of(self._stream, options_with(grouped, Grouped, **options)))

    @takes(GroupOptions)
    def group_by(
        self,
        selector: Callable[[K, V], NewK],
        grouped: Grouped | None = None,
        **options: Unpack[GroupOptions],
    ) -> KGroupedStream[NewK, V]:
        """Group by ``selector(key, value)``: through a repartition topic."""
        settings = options_with(grouped, Grouped, **options)
        return KGroupedStream(Grouping.of(self._stream.selected(selector, settings.name), settings))

    @takes(StreamTableOptions)
    def to_table(self, **options: Unpack[StreamTableOptions]) -> KTable[K, V]:
        """Read the stream as a table's updates: the last value per key, a null value deletes."""
        serdes = options["key_serde"], options["value_serde"]
        store = as_materialized(options["store"])
        return KTable(table_of_stream(self._stream, *serdes, options["name"], store))

    # -- fields of values that are dicts

    def fill(
        self: KStream[K, dict[str, Any]], defaults: Mapping[str, Any], *, name: str | None = None
    ) -> KStream[K, dict[str, Any]]:
        """Give fields that are missing in a value, or None, their default."""
        operator = stateless.map_values(filling(defaults))
        return KStream(self._stream.then("KSTREAM-MAPVALUES-", name, operator))

    def drop(
        self: KStream[K, dict[str, Any]],
        *fields: str,
        errors: Literal["raise", "ignore"] = "raise",
        name: str | None = None,
    ) -> KStream[K, dict[str, Any]]:
        """Leave fields out of a value. KeyError for one without them, unless ``errors`` is ``ignore``."""
        if errors not in ("raise", "ignore"):
            raise TopologyError(f"drop(): errors is {errors!r}, it may be 'raise' or 'ignore'")
        operator = stateless.map_values(dropping(fields, ignore_missing=errors == "ignore"))
        return KStream(self._stream.then("KSTREAM-MAPVALUES-", name, operator))

    # -- windows without gaps

    @takes(FillWindowsOptions)
    def fill_windows(
        self: KStream[Windowed[T], V], value: V | None = None, **options: Unpack[FillWindowsOptions]
    ) -> KStream[Windowed[T], V]:
        """Add a key's missing windows: those between two of its windows, the first ``limit`` of each gap.

        An added window has the value before the gap, or ``value`` unless it is None. The stream must have
        each window once, in order, as that of a table with ``on_window_close`` or of a suppressed one.
        """
        advance_ms = None if options["advance"] is None else milliseconds(options["advance"])
        filling = Filling(limit=options["limit"], constant=value, advance_ms=advance_ms)
        return KStream(filled(self._stream, filling, options["name"], as_materialized(options["store"])))

    # -- duplicates

    @overload
    def deduplicate(
        self, key: Callable[[V], Any] | None = None, **options: Unpack[DeduplicateOptions]
    ) -> KStream[K, V]: ...
    @overload
    def deduplicate(
        self, key: Callable[[K, V], Any], **options: Unpack[DeduplicateOptions]
    ) -> KStream[K, V]: ...
    @takes(DeduplicateOptions, grace=0)
    def deduplicate(
        self, key: Callable[..., Any] | None = None, **options: Unpack[DeduplicateOptions]
    ) -> KStream[K, V]:
        """Leave out records whose id went on ``within`` of their time, before or after (KIP-655).

        The id is the record's key, or its key and the result of ``key(value)``, or ``key(key, value)``.
        A record for which that is None goes on. Ids are remembered until stream time is ``within`` and
        ``grace`` past.
        """
        id_of = None if key is None else with_key(key, "deduplicate")
        return KStream(deduplicated(self._stream, id_of, **options))

    # -- joins by time

    @overload
    def interval_join(
        self,
        other: KStream[K, T],
        joiner: Callable[[V, T], NewV],
        joined: StreamJoined | None = None,
        **options: Unpack[IntervalJoinOptions],
    ) -> KStream[K, NewV]: ...
    @overload
    def interval_join(
        self,
        other: KStream[K, T],
        joiner: Callable[[K, V, T], NewV],
        joined: StreamJoined | None = None,
        **options: Unpack[IntervalJoinOptions],
    ) -> KStream[K, NewV]: ...
    @takes(IntervalJoinOptions, before=0, after=0, grace=0)
    def interval_join(
        self,
        other: KStream[K, T],
        joiner: Callable[..., NewV],
        joined: StreamJoined | None = None,
        **options: Unpack[IntervalJoinOptions],
    ) -> KStream[K, NewV]:
        """Join each record with those of ``other`` that have its key and are near it in time.

        They are at most ``before`` earlier, or ``after`` later, than the record: the same as `join` with
        ``JoinWindows(before, after, grace)``, under the name that other engines use.
        """
        windows = JoinWindows(before=options["before"], after=options["after"], grace=options["grace"])
        if not isinstance(other, KStream):
            raise TopologyError(f"an interval join is with a KStream, not with a {type(other).__name__}")
        return KStream(joined_within(self._stream, other._stream, joiner, windows, joined, options))

    @overload
    def join_asof(
        self,
        other: KStream[K, T],
        joiner: Callable[[V, T], NewV],
        joined: StreamJoined | None = None,
        **options: Unpack[AsOfJoinOptions],
    ) -> KStream[K, NewV]: ...
    @overload
    def join_asof(
        self,
        other: KStream[K, T],
        joiner: Callable[[K, V, T], NewV],
        joined: StreamJoined | None = None,
        **options: Unpack[AsOfJoinOptions],
    ) -> KStream[K, NewV]: ...
    @takes(AsOfJoinOptions, direction="backward", allow_exact_matches=True, grace=0)
    def join_asof(
        self,
        other: KStream[K, T],
        joiner: Callable[..., NewV],
        joined: StreamJoined | None = None,
        **options: Unpack[AsOfJoinOptions],
    ) -> KStream[K, NewV]:
        """Join each record with at most one of ``other`` and its key, as pandas' ``merge_asof`` does.

        The match is the last record that is not later (``backward``), the first that is not earlier
        (``forward``), or the nearest. It is no further away than ``tolerance``.

        A record goes on with its own timestamp when no better match can come any more that is at most
        ``grace`` late, by stream time. With ``idle_timeout`` it also goes on when the task's inputs brought
        nothing for so long, by wall clock.
        """
        return KStream(self._joined_as_of(other, joiner, joined, options, outer=False))

    @overload
    def left_join_asof(
        self,
        other: KStream[K, T],
        joiner: Callable[[V, T | None], NewV],
        joined: StreamJoined | None = None,
        **options: Unpack[AsOfJoinOptions],
    ) -> KStream[K, NewV]: ...
    @overload
    def left_join_asof(
        self,
        other: KStream[K, T],
        joiner: Callable[[K, V, T | None], NewV],
        joined: StreamJoined | None = None,
        **options: Unpack[AsOfJoinOptions],
    ) -> KStream[K, NewV]: ...
    @takes(AsOfJoinOptions, direction="backward", allow_exact_matches=True, grace=0)
    def left_join_asof(
        self,
        other: KStream[K, T],
        joiner: Callable[..., NewV],
        joined: StreamJoined | None = None,
        **options: Unpack[AsOfJoinOptions],
    ) -> KStream[K, NewV]:
        """Join as `join_asof` does, but join a record without a match with None."""
        return KStream(self._joined_as_of(other, joiner, joined, options, outer=True))

    def _joined_as_of(
        self,
        other: KStream[Any, Any],
        joiner: Callable[..., Any],
        joined: StreamJoined | None,
        options: AsOfJoinOptions,
        *,
        outer: bool,
    ) -> Stream:
        if not isinstance(other, KStream):
            raise TopologyError(f"an as-of join is with a KStream, not with a {type(other).__name__}")
        return joined_as_of(self._stream, other._stream, joiner, joined, options, outer=outer)

    # -- joins

    @overload
    def join(
        self,
        other: KStream[K, T] | KTable[K, T] | GlobalKTable[Any, T],
        joiner: Callable[[V, T], NewV],
        joined: Joined | StreamJoined | None = None,
        *,
        key_selector: Callable[[K, V], Any] | None = None,
        **options: Unpack[JoinOptions],
    ) -> KStream[K, NewV]: ...
    @overload
    def join(
        self,
        other: KStream[K, T] | KTable[K, T] | GlobalKTable[Any, T],
        joiner: Callable[[K, V, T], NewV],
        joined: Joined | StreamJoined | None = None,
        *,
        key_selector: Callable[[K, V], Any] | None = None,
        **options: Unpack[JoinOptions],
    ) -> KStream[K, NewV]: ...
    @takes(JoinOptions)
    def join(
        self,
        other: KStream[K, T] | KTable[K, T] | GlobalKTable[Any, T],
        joiner: Callable[..., NewV],
        joined: Joined | StreamJoined | None = None,
        *,
        key_selector: Callable[[K, V], Any] | None = None,
        **options: Unpack[JoinOptions],
    ) -> KStream[K, NewV]:
        """Join each record with the value of ``other`` for its key: ``joiner(value, other)``, or
        ``joiner(key, value, other)``.

        A table is looked up when the record is processed, a global table by ``key_selector(key, value)``.
        A versioned table is looked up as of the record's time; with ``grace``, once stream time is so much
        later. With a stream, each pair of records is joined whose times are within ``windows``, which are
        required then. ``other_value_serde`` and ``store`` are for a join with a stream only.
        """
        inner = _inner(other)
        return KStream(join_by_kind(self._stream, inner, joiner, joined, key_selector, options, left=False))

    @overload
    def left_join(
        self,
        other: KStream[K, T] | KTable[K, T] | GlobalKTable[Any, T],
        joiner: Callable[[V, T | None], NewV],
        joined: Joined | StreamJoined | None = None,
        *,
        key_selector: Callable[[K, V], Any] | None = None,
        **options: Unpack[JoinOptions],
    ) -> KStream[K, NewV]: ...
    @overload
    def left_join(
        self,
        other: KStream[K, T] | KTable[K, T] | GlobalKTable[Any, T],
        joiner: Callable[[K, V, T | None], NewV],
        joined: Joined | StreamJoined | None = None,
        *,
        key_selector: Callable[[K, V], Any] | None = None,
        **options: Unpack[JoinOptions],
    ) -> KStream[K, NewV]: ...
    @takes(JoinOptions)
    def left_join(
        self,
        other: KStream[K, T] | KTable[K, T] | GlobalKTable[Any, T],
        joiner: Callable[..., NewV],
        joined: Joined | StreamJoined | None = None,
        *,
        key_selector: Callable[[K, V], Any] | None = None,
        **options: Unpack[JoinOptions],
    ) -> KStream[K, NewV]:
        """Join as `join` does, but join a record without a match with None.

        In a join of two streams, such a result is emitted once the record's window and its grace are over.
        """
        inner = _inner(other)
        return KStream(join_by_kind(self._stream, inner, joiner, joined, key_selector, options, left=True))

    @overload
    def outer_join(
        self,
        other: KStream[K, T],
        joiner: Callable[[V | None, T | None], NewV],
        joined: StreamJoined | None = None,
        **options: Unpack[OuterJoinOptions],
    ) -> KStream[K, NewV]: ...
    @overload
    def outer_join(
        self,
        other: KStream[K, T],
        joiner: Callable[[K, V | None, T | None], NewV],
        joined: StreamJoined | None = None,
        **options: Unpack[OuterJoinOptions],
    ) -> KStream[K, NewV]: ...
    @takes(OuterJoinOptions)
    def outer_join(
        self,
        other: KStream[K, T],
        joiner: Callable[..., NewV],
        joined: StreamJoined | None = None,
        **options: Unpack[OuterJoinOptions],
    ) -> KStream[K, NewV]:
        """Join as `left_join` does, and also join the other stream's records without a match with None."""
        if not isinstance(other, KStream):
            raise TopologyError(
                f"an outer join of a stream is with a KStream, not with a {type(other).__name__}"
            )
        mine, others, windows = self._stream, other._stream, options["windows"]
        return KStream(joined_within(mine, others, joiner, windows, joined, options, outer=True))


def _inner(other: object) -> Stream | Table | GlobalTable:
    """Return the part of a noun that holds its nodes; raises TopologyError if it is none to join with."""
    if isinstance(other, KStream):
        return other._stream
    if isinstance(other, KTable | GlobalKTable):
        return other._table
    raise TopologyError(
        f"a stream is joined with a KStream, a KTable or a GlobalKTable, not with a {type(other).__name__}"
    )
