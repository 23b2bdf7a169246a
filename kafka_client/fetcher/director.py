"""Lookups for a fetcher's positions: leaders, offsets, and whether the records before them are still in the
log.

One task looks up everything that a partition needs before it can be fetched. `NodeFetch` reports errors of
brokers to the `Director`. The user's methods are in `fetcher`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from kafka_client.cluster.cluster import Client
from kafka_client.cluster.lookup import look_up_forever
from kafka_client.cluster.metadata import NO_NODE
from kafka_client.errors import ErrorCode, KafkaError, LogTruncated, MillstreamError, OffsetOutOfRange
from kafka_client.fetcher.buffer import FetchBuffer
from kafka_client.fetcher.damage import next_readable
from kafka_client.fetcher.fetch_metrics import FetchMetrics
from kafka_client.fetcher.fetched import Fetched
from kafka_client.fetcher.node import FetchSettings, NodeFetch
from kafka_client.fetcher.offsets import EARLIEST, LATEST, list_offsets
from kafka_client.fetcher.position import FetchPosition
from kafka_client.fetcher.validation import validate_positions

log = logging.getLogger(__name__)

DAMAGE = "its broker answers CORRUPT_MESSAGE, see the broker's log"
CLOSE_SECONDS = 0.5
"""How long to wait for brokers to drop their fetch sessions at a close; they expire otherwise."""


class Director:
    """Looks up leaders and offsets, and runs a `NodeFetch` per broker.

    `ready` is set when batches can be returned, or an error raised. `reset_offset`: EARLIEST or LATEST, where
    to continue if a position is outside the log; None raises an error.
    """

    def __init__(
        self, client: Client, buffer: FetchBuffer, settings: FetchSettings, reset_offset: int | None
    ) -> None:
        self.ready = asyncio.Event()
        self.failure: BaseException | None = None
        self.nodes: dict[int, NodeFetch] = {}
        self.metrics = FetchMetrics()
        self._client = client
        self.lane = client.new_lane("fetch")
        self._buffer = buffer
        self._partitions = buffer.partitions
        self._settings = settings
        self._reset_offset = reset_offset
        self._lookup_wanted = asyncio.Event()
        self._lookup: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def fail(self, error: BaseException) -> None:
        """Have every `fetch` raise `error` from now on."""
        self.failure = error
        self.ready.set()

    async def close(self) -> None:
        """End every task, and drop the brokers' sessions if they answer soon."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await asyncio.gather(*(node.close() for node in self.nodes.values()))
        except TimeoutError:
            pass
        await self._client.close_lane(self.lane)

    # --- what `NodeFetch` reports ---

    def made_ready(self) -> None:
        """Wake `fetch`: batches can be returned, or an error raised."""
        self.ready.set()

    def look_up(self) -> None:
        """Start a lookup for partitions that are new, lost their leader, or have an offset to find or
        validate.
        """
        if self._lookup is None:
            self._lookup = self._spawn(self._look_up_forever(), "fetch-director")
        self._lookup_wanted.set()

    def out_of_range(self, position: FetchPosition) -> None:
        """Look up where to continue, or the error to raise: the broker does not have the offset."""
        if self._reset_offset is not None:
            position.find_offset(self._reset_offset)
            self.look_up()
        else:
            position.park(None)
            position.validated()
            self._spawn(self._report_out_of_range(position), "fetch-range")

    def unreadable(self, position: FetchPosition) -> None:
        """Look up the next readable offset: the broker cannot read its log at this one."""
        position.park(None)
        self._spawn(self._pass_over(position), "fetch-damage")

    def diverged(self, position: FetchPosition, epoch: int, end_offset: int) -> None:
        """Handle a leader's log that diverges from the records read before `fetch_offset` (KIP-320).

        Of the read epochs the leader has `epoch`, which ends at `end_offset`, but no later one; -1: none. The
        returned records may still be in its log, so buffered ones are dropped and fetched again first.
        """
        if position.buffered:
            self._buffer.drop(position)
            self.look_up()
            return
        diverging = position.diverges_at(epoch, end_offset)
        if self._reset_offset is None:
            position.park(None)
            position.validated()
            self._spawn(self._report_truncated(position, diverging, epoch), "fetch-truncation")
            return
        log.warning("%s", _truncated(position, diverging))
        if diverging < 0:
            self.out_of_range(position)
        else:
            self._buffer.seek(position.tp, diverging, epoch)
            self.look_up()

    def prefers(self, position: FetchPosition, replica: int) -> bool:
        """Fetch a partition from the replica that its leader prefers (KIP-392); return False if the replica
        is unknown.

        The replica is used as long as metadata counts as fresh, then the leader again.
        """
        if replica not in self._client.cached_metadata.brokers:
            return False
        self._fetch_from(replica)
        now = asyncio.get_running_loop().time()
        position.read_from(replica, now + self._client.metadata_max_age_ms / 1000)
        return True

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Run a coroutine as a task whose error `fetch` raises."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._note_end)
        return task

    def _note_end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.fail(error)

    # --- lookups ---

    async def _look_up_forever(self) -> None:
        await look_up_forever(
            self._client,
            self._lookup_wanted,
            self._look_all_up,
            remains=lambda: bool(self._buffer.lookups),
            give_up=self._park_unknown,
        )

    async def _look_all_up(self) -> None:
        await self._find_leaders()
        await self._find_offsets()
        unvalidated = [position for position in self._buffer.lookups.values() if position.needs_validation]
        await validate_positions(self._client, unvalidated, self._partitions, self)

    async def _find_leaders(self) -> None:
        homeless = [position for position in self._buffer.lookups.values() if position.homeless]
        if not homeless:
            return
        metadata = await self._client.metadata(
            {position.tp.topic for position in homeless}, allow_missing=True
        )
        for position in homeless:
            topic = metadata.topics.get(position.tp.topic)
            partition = topic.partitions.get(position.tp.partition) if topic else None
            if topic is None or partition is None:
                self._note_missing(position)
                continue
            position.missing_since = None
            if partition.leader == NO_NODE or partition.leader not in metadata.brokers:
                self._client.invalidate_metadata()
                continue
            position.found_leader(partition.leader, partition.leader_epoch, topic.topic_id)
            self._fetch_from(partition.leader)

    def _fetch_from(self, number: int) -> None:
        if number not in self.nodes:
            node = self.nodes[number] = NodeFetch(
                self._client,
                number,
                lane=self.lane,
                settings=self._settings,
                buffer=self._buffer,
                director=self,
                metrics=self.metrics,
            )
            self._spawn(node.run(), f"fetch-node-{number}")

    def _note_missing(self, position: FetchPosition) -> None:
        """Wait for a missing topic, which may just have been created; after a time, raise an error for it."""
        self._client.invalidate_metadata()
        now = asyncio.get_running_loop().time()
        if position.missing_since is None:
            position.missing_since = now
        elif now - position.missing_since > self._client.missing_topic_wait_ms / 1000:
            position.park(KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{position.tp} does not exist"))
            self.ready.set()

    async def _find_offsets(self) -> None:
        unplaced = [
            position
            for position in self._buffer.lookups.values()
            if position.needs_offset and not position.homeless
        ]
        if not unplaced:
            return
        requests = {position.tp: position.fetch_offset for position in unplaced}
        versions = {position.tp: position.version for position in unplaced}
        offsets = await list_offsets(self._client, requests, isolation_level=self._settings.isolation_level)
        for tp, listed in offsets.items():
            position = self._partitions.get(tp)
            if position is not None and position.version == versions[tp] and position.needs_offset:
                position.found_offset(listed.offset)

    def _park_unknown(self, error: MillstreamError) -> None:
        for position in list(self._buffer.lookups.values()):
            position.park(error)
        self.ready.set()

    # --- positions that cannot be read, or no longer exist ---

    async def _pass_over(self, position: FetchPosition) -> None:
        """Find the next readable offset, and return an entry that names the skipped offsets."""
        version, first = position.version, position.fetch_offset
        try:
            after = await next_readable(self._client, position.tp, position.topic_id, first)
        except MillstreamError as error:
            if position.version == version:
                position.park(error)
        else:
            if position.version != version:
                return
            count = after - first
            empty = memoryview(b"")
            position.passed_over(Fetched(position.tp, first, after, empty, record_count=count, damage=DAMAGE))
        self.ready.set()

    async def _report_out_of_range(self, position: FetchPosition) -> None:
        """Look up the log's range, then have `fetch` raise OffsetOutOfRange with it."""
        version = position.version
        start, end = await self._log_range(position)
        if position.version == version:
            position.park(
                OffsetOutOfRange(
                    message=f"{position.tp}: offset {position.fetch_offset}, the log has {start} to {end}",
                    topic=position.tp.topic,
                    partition=position.tp.partition,
                    offset=position.fetch_offset,
                    start=start,
                    end=end,
                )
            )
            self.ready.set()

    async def _report_truncated(
        self, position: FetchPosition, diverging_offset: int, diverging_epoch: int
    ) -> None:
        version = position.version
        start, end = await self._log_range(position)
        if position.version == version:
            position.park(
                LogTruncated(
                    message=_truncated(position, diverging_offset),
                    topic=position.tp.topic,
                    partition=position.tp.partition,
                    offset=position.fetch_offset,
                    start=start,
                    end=end,
                    leader_epoch=position.fetch_epoch,
                    diverging_offset=diverging_offset,
                    diverging_epoch=diverging_epoch,
                )
            )
            self.ready.set()

    async def _log_range(self, position: FetchPosition) -> tuple[int, int]:
        """Return the log's current start and end, -1 if unknown."""
        start = end = -1
        try:
            start = (await list_offsets(self._client, {position.tp: EARLIEST}))[position.tp].offset
            end = (await list_offsets(self._client, {position.tp: LATEST}))[position.tp].offset
        except MillstreamError:
            pass
        return start, end


def _truncated(position: FetchPosition, diverging_offset: int) -> str:
    where = f"from offset {diverging_offset} on" if diverging_offset >= 0 else "nobody knows from where on"
    return (
        f"{position.tp}: the log was truncated, {where}; it was read up to {position.fetch_offset}, "
        f"in leader epoch {position.fetch_epoch}"
    )
