"""The stream reader of `readStream.format("millstream")`: passes Spark's calls to `stream_planner`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from plugins.spark.range_partition import RangePartition
from plugins.spark.stream_offsets import StreamOffsets
from plugins.spark.stream_options import StreamOptions
from plugins.spark.stream_planner import StreamPlanner
from plugins.spark.worker_connections import WorkerConnection

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")


class MillstreamStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream's plans, in a process of its own, and its reads, in Spark's workers.

    Spark pickles the reader for the workers, with its options alone.
    """

    def __init__(self, options: StreamOptions) -> None:
        self.options = options
        self._connection: WorkerConnection | None = None
        self._planner: StreamPlanner | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return the options: connections stay in their process."""
        return {"options": self.options, "_connection": None, "_planner": None}

    def initialOffset(self) -> dict[str, Any]:
        """Return where a new query begins."""
        return self._run(lambda planner: planner.initial_offsets()).to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit of the options; of both limits Spark is told the larger one, and we apply both."""
        if self.options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self.options.max_offsets_per_trigger)
        if self.options.min_offsets_per_trigger is not None:
            return ReadMinRows(self.options.min_offsets_per_trigger)
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return where the next micro-batch ends; `start` itself if there is nothing to read."""
        begin = StreamOffsets.parse(start)
        is_limited = not isinstance(limit, ReadAllAvailable)
        end = self._run(lambda planner: planner.plan_end(begin, is_limited=is_limited))
        return start if end is begin else end.to_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return the log's ends, for the query's progress."""
        latest = self._planner.known_latest if self._planner is not None else None
        return None if latest is None else latest.to_json()

    def prepareForTriggerAvailableNow(self) -> None:
        """Have the query end at the log's present ends."""
        self._run(_stop_at_present_end)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Return the ranges of a micro-batch."""
        begin, finish = StreamOffsets.parse(start), StreamOffsets.parse(end)
        return [RangePartition(r) for r in self._run(lambda planner: planner.plan_ranges(begin, finish))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of one range as Arrow batches."""
        from plugins.spark.arrow import read_arrow

        return read_arrow(self.options.read, partition.value)

    def commit(self, end: dict[str, Any]) -> None:
        """Commit the progress of the group."""
        position = StreamOffsets.parse(end)
        self._run(lambda planner: planner.commit(position))

    def stop(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
        self._connection = self._planner = None

    def _run(self, work: Callable[[StreamPlanner], Awaitable[T]]) -> T:
        read = self.options.read
        if self._connection is None:
            self._connection = WorkerConnection(read.bootstrap_servers, read.client, {})
        connection = self._connection

        async def call() -> T:
            if self._planner is None:
                self._planner = StreamPlanner(await connection.client(), self.options)
            return await work(self._planner)

        return connection.run(call())


async def _stop_at_present_end(planner: StreamPlanner) -> None:
    planner.stop_at_present_end()
