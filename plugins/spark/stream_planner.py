"""Plans a stream's micro-batches: where it begins, how far it can go, which ranges are read.

It runs in the process that Spark keeps for the stream. Lost data is defined as in Spark's Kafka source, and
topics that were created again are told apart by their ids.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from kafka_client import Admin, Client, TopicPartition
from kafka_client.errors import MillstreamError
from plugins.spark.admission import TriggerDelay, limit_offsets
from plugins.spark.data_loss import LogEndsEarly, PartitionDeleted, RecordsPurged, TopicReplaced, report
from plugins.spark.errors import DataLost
from plugins.spark.log_range import LogRange
from plugins.spark.ranges import find_offsets, find_partitions, list_offsets, within_log
from plugins.spark.splitting import split_ranges
from plugins.spark.stream_offsets import StreamOffsets
from plugins.spark.stream_options import StreamOptions

_log = logging.getLogger(__name__)

LATEST_SECONDS = 0.1
"""Age up to which the log's ends are not requested again: Spark asks 80 times a second."""


class StreamPlanner:
    """The plans of one stream, by a client that is connected."""

    def __init__(
        self, client: Client, options: StreamOptions, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._client = client
        self._options = options
        self._read = options.read
        self._clock = clock
        self._initial: StreamOffsets | None = None
        self._latest: StreamOffsets | None = None
        self._latest_at = 0.0
        self._is_available_now = False
        self._target: StreamOffsets | None = None
        """Where an AvailableNow query ends."""
        self._committed: StreamOffsets | None = None
        """The progress that was last committed for the group."""
        self._delay = TriggerDelay(options.min_offsets_per_trigger or 0, options.max_trigger_delay_ms, clock)

    @property
    def known_latest(self) -> StreamOffsets | None:
        """The log's ends by the last request, None before it."""
        return self._latest

    def stop_at_present_end(self) -> None:
        """Have the stream end at the log's ends at the next plan (AvailableNow)."""
        self._is_available_now, self._target = True, None

    async def initial_offsets(self) -> StreamOffsets:
        """Return where a new query begins; the same at every call. Raises DataLost and ConfigError."""
        if self._initial is None:
            ids = await find_partitions(self._client, self._read)
            earliest = await list_offsets(self._client, self._read, dict.fromkeys(ids, "earliest"))
            latest = await list_offsets(self._client, self._read, dict.fromkeys(ids, "latest"))
            starts = await find_offsets(self._client, self._read, "starting", list(ids), earliest, latest)
            offsets = {}
            for tp, start in starts.items():
                whole = LogRange(*tp, start, max(latest[tp], start), ids[tp])
                offsets[tp] = within_log(whole, earliest[tp], latest[tp], self._read.fail_on_data_loss).start
            self._initial = StreamOffsets(offsets=offsets, ids=_topic_ids(ids), is_first=True)
        return self._initial

    async def plan_end(self, start: StreamOffsets, *, is_limited: bool) -> StreamOffsets:
        """Return where the next micro-batch ends: `start` itself if there is nothing to read.

        `is_limited` is False for a trigger that reads everything. Commits the progress of the group.
        """
        await self.commit(start)
        ends = await self._find_ends(start)
        starts = {**start.offsets, **await self._new_starts(start, ends)}
        starts = {tp: starts.get(tp, end) for tp, end in ends.offsets.items()}
        if is_limited and not self._is_available_now and self._delay.delays(starts, ends.offsets):
            return start
        offsets = dict(ends.offsets)
        if is_limited and self._options.max_offsets_per_trigger is not None:
            offsets = limit_offsets(self._options.max_offsets_per_trigger, starts, offsets)
        if not start.is_first and offsets == start.offsets and (not start.ids or ends.ids == start.ids):
            return start
        return StreamOffsets(offsets=offsets, ids=ends.ids, origin=start if start.is_first else None)

    async def plan_ranges(self, start: StreamOffsets, end: StreamOffsets) -> list[LogRange]:
        """Return the ranges of a micro-batch, split into tasks. Raises DataLost by its kind."""
        if start.is_first and end.origin is not None:
            start = end.origin  # A query that is started again: its first batch begins where it began.
        fail = self._read.fail_on_data_loss
        for tp in sorted(start.offsets.keys() - end.offsets.keys()):
            report(PartitionDeleted(*tp, start.offsets[tp]), fail)
        new = await self._new_starts(start, end)
        ranges = []
        for tp in sorted(end.offsets):
            planned = new[tp] if tp in new else start.offsets.get(tp)
            if planned is None:
                report(PartitionDeleted(*tp, 0), fail)
                continue
            loss = self._loss(tp, planned, start, end)
            if loss is not None:
                report(loss, fail)
            topic_id = end.ids.get(tp.topic, b"")
            ranges.append(LogRange(*tp, planned, end.offsets[tp], topic_id))
        return split_ranges(ranges, self._read.min_partitions, self._read.max_records_per_partition)

    def _loss(
        self, tp: TopicPartition, planned: int, start: StreamOffsets, end: StreamOffsets
    ) -> DataLost | None:
        """Return what was lost before the range, if anything was."""
        if start.is_of_other_topic(tp.topic, end):
            position = start.offsets.get(tp, 0)
            return TopicReplaced(*tp, position, start.ids[tp.topic], end.ids[tp.topic])
        if tp not in start.offsets and planned > 0:
            return RecordsPurged(*tp, 0, planned)
        if end.offsets[tp] < planned:
            return LogEndsEarly(*tp, planned, end.offsets[tp])
        return None

    async def _find_ends(self, start: StreamOffsets) -> StreamOffsets:
        if self._is_available_now:
            if self._target is None:
                self._target = await self._request_ends(start)
            return self._target
        if self._latest is None or self._clock() - self._latest_at >= LATEST_SECONDS:
            self._latest = await self._request_ends(start)
            self._latest_at = self._clock()
        return self._latest

    async def _request_ends(self, start: StreamOffsets) -> StreamOffsets:
        """Return the ends of all partitions; ends before the stream's position are requested again."""
        for attempt in range(1, self._options.fetch_attempts + 1):
            ids = await find_partitions(self._client, self._read, allow_missing=True)
            offsets = await list_offsets(self._client, self._read, dict.fromkeys(ids, "latest"))
            ends = StreamOffsets(offsets=offsets, ids=_topic_ids(ids))
            early = [
                tp
                for tp, offset in offsets.items()
                if offset < start.offsets.get(tp, 0) and not start.is_of_other_topic(tp.topic, ends)
            ]
            if not early or attempt == self._options.fetch_attempts:
                break
            await asyncio.sleep(self._options.retry_interval_ms / 1000)
        self._latest = ends
        return ends

    async def _new_starts(self, start: StreamOffsets, end: StreamOffsets) -> dict[TopicPartition, int]:
        """Return the log starts of partitions that the stream has not read; deleted ones are left out."""
        new = [tp for tp in end.offsets if tp not in start.offsets or start.is_of_other_topic(tp.topic, end)]
        if not new:
            return {}
        existing = await find_partitions(self._client, self._read, allow_missing=True)
        specs = dict.fromkeys((tp for tp in new if tp in existing), "earliest")
        return await list_offsets(self._client, self._read, specs)

    async def commit(self, position: StreamOffsets) -> None:
        """Commit the position of the group, if there is one; a failure is logged, and the stream goes on."""
        if self._read.group_id is None or position.is_first or position == self._committed:
            return
        try:
            await Admin(self._client).alter_group_offsets(self._read.group_id, position.offsets)
        except MillstreamError as error:
            _log.warning("group %s: progress was not committed: %s", self._read.group_id, error)
        self._committed = position


def _topic_ids(ids: dict[TopicPartition, bytes]) -> dict[str, bytes]:
    return {tp.topic: topic_id for tp, topic_id in ids.items()}
